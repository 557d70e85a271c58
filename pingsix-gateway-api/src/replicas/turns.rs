//! Shares of a record, of which there is too little for everything.

use std::collections::BTreeMap;

use pingsix_sink::Scope;

/// Items in the order in which their groups take turns: the first of each group, then the second of each, and so on. Within
/// a turn the order stays as it is, and so it does within a group.
pub(super) fn in_turns<G: Ord, T>(items: impl IntoIterator<Item = (G, T)>) -> Vec<T> {
    let mut turns: BTreeMap<G, usize> = BTreeMap::new();
    let mut items: Vec<(usize, T)> = items
        .into_iter()
        .map(|(group, item)| {
            let turn = turns.entry(group).or_default();
            *turn += 1;
            (*turn, item)
        })
        .collect();
    items.sort_by_key(|(turn, _)| *turn);
    items.into_iter().map(|(_, item)| item).collect()
}

/// The group of a scope: all Gateways of a namespace, or all IngressClasses.
pub(super) fn group_of(scope: &Scope) -> &str {
    scope.as_str().rsplit_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_its_turn_before_any_has_another() {
        let items = [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("c", 6)];
        assert_eq!(in_turns(items), [1, 4, 5, 2, 6, 3]);
        let scope = |prefix: &str| Scope::new(prefix).unwrap();
        assert_eq!(group_of(&scope("/pingsix/shop/web:80")), "/pingsix/shop");
        assert_eq!(group_of(&scope("/pingsix-ingress/edge")), "/pingsix-ingress");
    }
}
