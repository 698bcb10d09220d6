#!/bin/sh
# Makes the pictures of README.md and docs/tutorial.md, in the order of the pages. Run from the root of the repository after
# `cargo build --release`; about twelve minutes on two cores. Folders are made below $WORK.
#
#   CROSSLENS=target/release/crosslens CHROMIUM=chromium WORK=/tmp/pictures sh docs/images/make.sh
#
# Pictures are kept as Chromium writes them: a palette makes colours of a legend the same.
set -eu
CROSSLENS=$(realpath "${CROSSLENS:-target/release/crosslens}")
CHROMIUM=${CHROMIUM:-${CROSSLENS_CHROMIUM:-chromium}}
IMAGES=$(realpath docs/images)
WORK=${WORK:-$(mktemp -d)}
mkdir -p "$WORK"
cd "$WORK"

# Picture of a page: its address, width, height, file of the picture, 0 for dark colours or 1 for light ones.
shot() {
  "$CHROMIUM" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --force-device-scale-factor=1 \
    --blink-settings=preferredColorScheme="${5:-1}" \
    --user-data-dir="$WORK/profile" --virtual-time-budget=10000 --window-size="$2,$3" --screenshot="$4" "$1"
}
PAGES="file://$WORK"

# README.md
"$CROSSLENS" train one-to-one --arch aed --record-every 60 --out runs/aed
"$CROSSLENS" explain runs/aed --geometry --save runs/aed/report.json
"$CROSSLENS" figure runs/aed terms --dpi 150 -o "$IMAGES/terms.png"
"$CROSSLENS" report runs/aed/report.json -o aed.html
shot "$PAGES/aed.html#view=head&pin=5%2C5" 1400 1250 "$IMAGES/head.png"
shot "$PAGES/aed.html#view=head&off=1&show=rebuilt" 1400 1160 "$IMAGES/rebuilt-dark.png" 0
shot "$PAGES/aed.html#view=components" 1400 960 "$IMAGES/components.png"
shot "$PAGES/aed.html#view=training" 1440 1180 "$IMAGES/training-dark.png" 0

# docs/tutorial.md, step 1
"$CROSSLENS" train one-to-one --arch ved --out runs/ved
"$CROSSLENS" figure runs/ved training -o "$IMAGES/tutorial-learning.svg"
# 2
"$CROSSLENS" explain runs/ved --geometry --save runs/ved/report.json
"$CROSSLENS" figure runs/ved components -o "$IMAGES/tutorial-ved.svg"
# 3 to 5
"$CROSSLENS" train reverse --arch ao --out runs/reverse
"$CROSSLENS" explain runs/reverse --geometry --save runs/reverse/report.json
"$CROSSLENS" figure runs/reverse attention -o "$IMAGES/tutorial-attention.svg"
"$CROSSLENS" figure runs/reverse shares -o "$IMAGES/tutorial-shares.svg"
"$CROSSLENS" figure runs/reverse components -o "$IMAGES/tutorial-components.svg"
# 6
"$CROSSLENS" train escan --arch bahdanau --record-every 20 --out runs/bahdanau
"$CROSSLENS" train escan --arch luong --record-every 20 --out runs/luong
"$CROSSLENS" explain runs/bahdanau --save runs/bahdanau/report.json
"$CROSSLENS" figure runs/bahdanau attention -o "$IMAGES/tutorial-bahdanau.svg"
# 7
"$CROSSLENS" report runs/bahdanau runs/luong -o forming.html
shot "$PAGES/forming.html#view=training&report=0" 1280 1180 "$IMAGES/tutorial-forming-bahdanau.png"
shot "$PAGES/forming.html#view=training&report=1" 1280 1180 "$IMAGES/tutorial-forming-luong.png"
"$CROSSLENS" train reverse --arch aed --record-every 50 --out runs/forming
"$CROSSLENS" figure runs/forming training -o "$IMAGES/tutorial-training.svg"
# README.md again: a sentence typed into Luong's network
"$CROSSLENS" serve runs/luong > address &
SERVER=$!
trap 'kill $SERVER' EXIT
until [ -s address ]; do sleep 1; done
until curl --silent --fail --output /dev/null "$(cat address)api/reports/0"; do sleep 1; done
QUESTION='%7B%22source%22%3A%22run+twice+and+look+%3C.%3E+walk+and+run+%3C.%3E%22%7D'
shot "$(cat address)#view=head&asked=$QUESTION" 1280 1300 "$IMAGES/live.png"
kill $SERVER
trap - EXIT
# 8
"$CROSSLENS" train reverse --arch transformer --out runs/self
"$CROSSLENS" heads runs/self --self-attention --save runs/self/report.json
"$CROSSLENS" figure runs/self attention --site 0 -o "$IMAGES/tutorial-cross.svg"
"$CROSSLENS" figure runs/self attention --site 2 -o "$IMAGES/tutorial-encoder-self.svg"
"$CROSSLENS" figure runs/self attention --site 4 -o "$IMAGES/tutorial-decoder-self.svg"
"$CROSSLENS" figure runs/self atlas -o "$IMAGES/tutorial-self-atlas.svg"
# 9
"$CROSSLENS" reproduce --quick
shot "$PAGES/crosslens-reproduction/reproduce.html#view=claims" 1280 1000 "$IMAGES/tutorial-claims.png"

# README.md: all heads of a small Transformer
"$CROSSLENS" train translation --arch transformer --out runs/grammar
"$CROSSLENS" heads runs/grammar --self-attention --save grammar.json
"$CROSSLENS" report grammar.json -o grammar.html
shot "$PAGES/grammar.html#view=atlas" 1280 900 "$IMAGES/atlas.png"
