//! What single tokens of a byte-level tokenizer say.
//!
//! Such a tokenizer names each byte by a character: printable ones of Latin-1 by themselves, the others, space among them, by those from
//! U+0100 on. A character of several bytes may be cut into several tokens.

use crosslens_analysis::Token;

use crate::text::TextTokenizer;

/// The byte that a character of a token's name stands for.
fn byte_of(character: char) -> Option<u8> {
    let is_plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match u32::from(character) {
        code @ 0..=0xFF => u8::try_from(code).ok().filter(|&byte| is_plain(byte)),
        code => (0..=u8::MAX).filter(|&byte| !is_plain(byte)).nth(code as usize - 0x100),
    }
}

/// The pieces of a text, one for each token: whole characters, each in the first of the tokens that make it up; the others have nothing.
/// Bytes that are no character become `\u{FFFD}`. Nothing for tokens that are no text: those from `end` on.
pub(super) fn pieces(text: &TextTokenizer, tokens: &[Token], end: Token) -> Vec<Option<String>> {
    let mut pieces: Vec<Option<String>> = Vec::with_capacity(tokens.len());
    // Bytes of a character that is not yet whole, and the token it began in.
    let (mut open, mut begun) = (Vec::new(), 0);
    for (place, &token) in tokens.iter().enumerate() {
        if token >= end {
            pieces.push(None);
            continue;
        }
        pieces.push(Some(String::new()));
        let name = text.target_token(token).unwrap_or_default();
        // A name with a character that stands for no byte was added as it is.
        let bytes: Vec<u8> = name.chars().map(byte_of).collect::<Option<_>>().unwrap_or_else(|| name.as_bytes().to_vec());
        for byte in bytes {
            if open.is_empty() {
                begun = place;
            }
            open.push(byte);
            let whole = match std::str::from_utf8(&open) {
                Ok(text) => Some(text.to_owned()),
                Err(error) if error.error_len().is_some() => Some(String::from_utf8_lossy(&open).into_owned()),
                Err(_) => None,
            };
            if let (Some(whole), Some(Some(piece))) = (whole, pieces.get_mut(begun)) {
                piece.push_str(&whole);
                open.clear();
            }
        }
    }
    if !open.is_empty()
        && let Some(Some(piece)) = pieces.get_mut(begun)
    {
        piece.push('\u{FFFD}');
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_character() {
        assert_eq!("AĠÃ¤".chars().map(byte_of).collect::<Option<Vec<_>>>(), Some(b"A \xC3\xA4".to_vec()));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!([byte_of(' '), byte_of('▁'), byte_of('\u{1FF}')], [None; 3]);
        let mut all: Vec<u8> = ('!'..'\u{150}').filter_map(byte_of).collect();
        all.sort_unstable();
        assert_eq!(all, (0..=255).collect::<Vec<u8>>());
    }
}
