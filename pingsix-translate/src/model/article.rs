//! Articles of kinds in sentences.

/// The indefinite article of a word, as English speaks it: "an Ingress", "an HTTPRoute", "a UDPRoute".
pub fn article(word: &str) -> &'static str {
    let mut letters = word.chars();
    let (first, second) = (letters.next().unwrap_or_default(), letters.next().unwrap_or_default());
    // Several capitals are spoken letter by letter.
    let is_spelled = first.is_ascii_uppercase() && second.is_ascii_uppercase();
    let begins_with_a_vowel = if is_spelled {
        "AEFHILMNORSX".contains(first)
    } else {
        "AEIOUaeiou".contains(first) || word.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("hour"))
    };
    if begins_with_a_vowel { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::article;
    use crate::model::Kind;

    #[test]
    fn kinds_have_the_article_with_which_they_are_spoken() {
        let with_an: Vec<&str> =
            Kind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| article(kind) == "an").collect();
        assert_eq!(with_an, ["HTTPRoute", "IngressClass", "Ingress", "EndpointSlice", "HTTPRouteFilter"]);
        for (word, expected) in [("ApisixRoute", "an"), ("Hour", "an"), ("Minute", "a"), ("", "a")] {
            assert_eq!(article(word), expected, "{word}");
        }
    }
}
