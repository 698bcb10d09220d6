//! The words of the miniature grammar.

/// Grammatical gender of French.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gender {
    Masculine,
    Feminine,
}

use Gender::{Feminine, Masculine};

/// What a noun can do in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Acts, and is acted upon.
    Animate,
    /// Is acted upon.
    Thing,
    /// Is acted upon, and something can be in it or behind it.
    Place,
}

#[derive(Debug)]
pub(super) struct Noun {
    /// Singular and plural.
    pub(super) english: [&'static str; 2],
    /// Singular and plural.
    pub(super) french: [&'static str; 2],
    pub(super) gender: Gender,
    pub(super) sort: Sort,
}

const fn noun(english: [&'static str; 2], french: [&'static str; 2], gender: Gender, sort: Sort) -> Noun {
    Noun { english, french, gender, sort }
}

pub(super) const NOUNS: &[Noun] = &[
    noun(["cat", "cats"], ["chat", "chats"], Masculine, Sort::Animate),
    noun(["dog", "dogs"], ["chien", "chiens"], Masculine, Sort::Animate),
    noun(["horse", "horses"], ["cheval", "chevaux"], Masculine, Sort::Animate),
    noun(["bird", "birds"], ["oiseau", "oiseaux"], Masculine, Sort::Animate),
    noun(["mouse", "mice"], ["souris", "souris"], Feminine, Sort::Animate),
    noun(["man", "men"], ["homme", "hommes"], Masculine, Sort::Animate),
    noun(["woman", "women"], ["femme", "femmes"], Feminine, Sort::Animate),
    noun(["girl", "girls"], ["fille", "filles"], Feminine, Sort::Animate),
    noun(["child", "children"], ["enfant", "enfants"], Masculine, Sort::Animate),
    noun(["queen", "queens"], ["reine", "reines"], Feminine, Sort::Animate),
    noun(["book", "books"], ["livre", "livres"], Masculine, Sort::Thing),
    noun(["apple", "apples"], ["pomme", "pommes"], Feminine, Sort::Thing),
    noun(["star", "stars"], ["étoile", "étoiles"], Feminine, Sort::Thing),
    noun(["flower", "flowers"], ["fleur", "fleurs"], Feminine, Sort::Thing),
    noun(["house", "houses"], ["maison", "maisons"], Feminine, Sort::Place),
    noun(["garden", "gardens"], ["jardin", "jardins"], Masculine, Sort::Place),
    noun(["school", "schools"], ["école", "écoles"], Feminine, Sort::Place),
    noun(["car", "cars"], ["voiture", "voitures"], Feminine, Sort::Place),
];

#[derive(Debug)]
pub(super) struct Adjective {
    pub(super) english: &'static str,
    /// Masculine and feminine, each singular and plural.
    pub(super) french: [[&'static str; 2]; 2],
    /// The masculine singular before a vowel: `bel`, `vieil`.
    pub(super) before_vowel: &'static str,
}

const fn adjective(english: &'static str, masculine: [&'static str; 2], feminine: [&'static str; 2]) -> Adjective {
    Adjective { english, french: [masculine, feminine], before_vowel: masculine[0] }
}

/// Adjectives that stand before their noun in French too.
pub(super) const BEFORE: &[Adjective] = &[
    adjective("small", ["petit", "petits"], ["petite", "petites"]),
    adjective("big", ["grand", "grands"], ["grande", "grandes"]),
    adjective("young", ["jeune", "jeunes"], ["jeune", "jeunes"]),
    Adjective { before_vowel: "bel", ..adjective("beautiful", ["beau", "beaux"], ["belle", "belles"]) },
    Adjective { before_vowel: "vieil", ..adjective("old", ["vieux", "vieux"], ["vieille", "vieilles"]) },
];

/// Adjectives that follow their noun in French.
pub(super) const AFTER: &[Adjective] = &[
    adjective("red", ["rouge", "rouges"], ["rouge", "rouges"]),
    adjective("black", ["noir", "noirs"], ["noire", "noires"]),
    adjective("white", ["blanc", "blancs"], ["blanche", "blanches"]),
    adjective("green", ["vert", "verts"], ["verte", "vertes"]),
    adjective("happy", ["heureux", "heureux"], ["heureuse", "heureuses"]),
    adjective("tired", ["fatigué", "fatigués"], ["fatiguée", "fatiguées"]),
];

#[derive(Debug)]
pub(super) struct Verb {
    /// `see`, `sees`, `saw`.
    pub(super) english: [&'static str; 3],
    /// `vois`, `voit`, `voyons`, `voient`: I, he, we, they.
    pub(super) present: [&'static str; 4],
    /// `verrai`, `verra`, `verrons`, `verront`.
    pub(super) future: [&'static str; 4],
    /// Masculine and feminine, each singular and plural.
    pub(super) participle: [[&'static str; 2]; 2],
}

/// Verbs with an object.
pub(super) const TRANSITIVE: &[Verb] = &[
    Verb {
        english: ["see", "sees", "saw"],
        present: ["vois", "voit", "voyons", "voient"],
        future: ["verrai", "verra", "verrons", "verront"],
        participle: [["vu", "vus"], ["vue", "vues"]],
    },
    Verb {
        english: ["love", "loves", "loved"],
        present: ["aime", "aime", "aimons", "aiment"],
        future: ["aimerai", "aimera", "aimerons", "aimeront"],
        participle: [["aimé", "aimés"], ["aimée", "aimées"]],
    },
    Verb {
        english: ["find", "finds", "found"],
        present: ["trouve", "trouve", "trouvons", "trouvent"],
        future: ["trouverai", "trouvera", "trouverons", "trouveront"],
        participle: [["trouvé", "trouvés"], ["trouvée", "trouvées"]],
    },
    Verb {
        english: ["watch", "watches", "watched"],
        present: ["regarde", "regarde", "regardons", "regardent"],
        future: ["regarderai", "regardera", "regarderons", "regarderont"],
        participle: [["regardé", "regardés"], ["regardée", "regardées"]],
    },
    Verb {
        english: ["hear", "hears", "heard"],
        present: ["entends", "entend", "entendons", "entendent"],
        future: ["entendrai", "entendra", "entendrons", "entendront"],
        participle: [["entendu", "entendus"], ["entendue", "entendues"]],
    },
    Verb {
        english: ["follow", "follows", "followed"],
        present: ["suis", "suit", "suivons", "suivent"],
        future: ["suivrai", "suivra", "suivrons", "suivront"],
        participle: [["suivi", "suivis"], ["suivie", "suivies"]],
    },
];

/// Things are seen, loved, found and watched, but neither heard nor followed: the first so many transitive verbs.
pub(super) const N_VERBS_OF_THINGS: usize = 4;

/// Verbs without an object; in the past they go with `avoir` and their participle never agrees.
pub(super) const INTRANSITIVE: &[Verb] = &[
    Verb {
        english: ["sleep", "sleeps", "slept"],
        present: ["dors", "dort", "dormons", "dorment"],
        future: ["dormirai", "dormira", "dormirons", "dormiront"],
        participle: [["dormi"; 2]; 2],
    },
    Verb {
        english: ["run", "runs", "ran"],
        present: ["cours", "court", "courons", "courent"],
        future: ["courrai", "courra", "courrons", "courront"],
        participle: [["couru"; 2]; 2],
    },
    Verb {
        english: ["sing", "sings", "sang"],
        present: ["chante", "chante", "chantons", "chantent"],
        future: ["chanterai", "chantera", "chanterons", "chanteront"],
        participle: [["chanté"; 2]; 2],
    },
    Verb {
        english: ["play", "plays", "played"],
        present: ["joue", "joue", "jouons", "jouent"],
        future: ["jouerai", "jouera", "jouerons", "joueront"],
        participle: [["joué"; 2]; 2],
    },
];

/// `être` in the present, the imperfect and the future.
pub(super) const BE: [[&str; 4]; 3] =
    [["suis", "est", "sommes", "sont"], ["étais", "était", "étions", "étaient"], ["serai", "sera", "serons", "seront"]];

/// `avoir` in the present, which makes the past.
pub(super) const HAVE: [&str; 4] = ["ai", "a", "avons", "ont"];

/// Adverbs before the English verb and after the French one.
pub(super) const OFTEN: &[[&str; 2]] = &[["often", "souvent"], ["always", "toujours"]];

/// Adverbs at the end of a clause.
pub(super) const LAST: &[[&str; 2]] = &[["here", "ici"], ["today", "aujourd'hui"]];

/// Where something happens.
pub(super) const PREPOSITIONS: &[[&str; 2]] = &[["in", "dans"], ["behind", "derrière"]];
