//! Which watches run: they begin and end as they are allotted, and as one takes the place of another.

use std::collections::BTreeSet;

use futures::stream::{AbortHandle, BoxStream, StreamExt as _, abortable};
use pingsix_translate::snapshot::{ConfigMap, Secret};
use pingsix_translate::{Kind, ObjectKey, ObjectName};

use super::super::allotment::{KindInNamespace, Need, Terms, Width, allot};
use super::super::input::Closed;
use super::super::named::{NameWatch, Referents, Speaker, sights};
use super::super::options::Namespaces;
use super::super::wide::{Scope, State, WideWatch, wide_sights};
use super::{Referenced, ReferencedEvent};

impl Referenced {
    /// Allots watches anew, and begins and ends them accordingly.
    pub(super) async fn adjust(&mut self) -> Result<(), Closed> {
        let need =
            |held: &Referents| Need { names: held.objects.len(), width: held.share.map(|share| share.width) };
        let needs = self.places.iter().map(|(place, held)| (place.clone(), need(held))).collect();
        let allotment = allot(&needs, &self.terms());
        let mut scopes: BTreeSet<Scope> = allotment.cluster.iter().copied().map(Scope::everywhere).collect();
        let mut refused = 0;
        for (place, share) in allotment.shares {
            if share.width == Width::Namespace {
                scopes.insert(Scope::of(&place));
            }
            refused += usize::from(share.width == Width::Refused);
            if let Some(held) = self.places.get_mut(&place) {
                held.share = Some(share);
            }
        }
        if std::mem::replace(&mut self.are_refused, refused > 0) != (refused > 0) {
            self.log_refused(refused);
        }
        for scope in &scopes {
            if !self.wide.contains_key(scope) {
                let stop = self.begin_wide(scope);
                self.wide.insert(scope.clone(), WideWatch::new(stop));
            }
        }
        self.wanted_scopes = scopes;
        let places: Vec<KindInNamespace> = self.places.keys().cloned().collect();
        for place in &places {
            self.settle_all(place);
            self.fill(place).await?;
        }
        self.end_wide();
        Ok(())
    }

    fn terms(&self) -> Terms {
        let everywhere = self.wide.iter().filter(|(scope, _)| scope.namespace.is_none());
        let forbidden = everywhere.clone().filter(|(_, wide)| wide.forbidden.is_some());
        Terms {
            bounds: self.ground.options.names,
            is_everywhere: self.ground.options.namespaces == Namespaces::All,
            cluster: everywhere.map(|(scope, _)| scope.kind).collect(),
            forbidden: forbidden.map(|(scope, _)| scope.kind).collect(),
        }
    }

    fn log_refused(&self, refused: usize) {
        let watches = self.ground.options.names.watches;
        if refused > 0 {
            tracing::warn!(
                namespaces = refused,
                watches,
                "objects are referred to in more namespaces than are watched; those of the others cannot be read, \
                 because the list of all namespaces is forbidden"
            );
        } else {
            tracing::info!("watching referenced objects in all namespaces again");
        }
    }

    /// The wide watch that a place has, or is to have.
    pub(super) fn scope_of(&self, place: &KindInNamespace) -> Option<Scope> {
        match self.places.get(place)?.share?.width {
            Width::Namespace => Some(Scope::of(place)),
            Width::Cluster => Some(Scope::everywhere(place.kind)),
            Width::Name | Width::Refused => None,
        }
    }

    /// Has the watch that is meant to speak for an object do so, once it knows what was handed on, and ends the watch of its
    /// name when that is another. Returns whether anything changed.
    pub(super) fn settle(&mut self, place: &KindInNamespace, name: &ObjectName) -> bool {
        let scope = self.scope_of(place);
        let wide = scope.and_then(|scope| Some((Speaker::of(&scope), self.wide.get(&scope)?)));
        let wide =
            wide.filter(|(_, wide)| wide.is_usable()).map(|(speaker, wide)| (speaker, wide.state(name)));
        let Some(held) = self.places.get_mut(place) else { return false };
        let Some(named) = held.objects.get_mut(name) else { return false };
        let by_name = || named.watch.as_ref().map_or(State::Unknown, |watch| watch.state.clone());
        let (meant, state) = wide.unwrap_or_else(|| (Speaker::Name, by_name()));
        let mut is_other = false;
        if named.told.is_settled() && named.speaker != meant && state == named.told {
            named.speaker = meant;
            is_other = true;
        }
        if named.speaker == meant
            && meant != Speaker::Name
            && named.told.is_settled()
            && let Some(watch) = named.watch.take()
        {
            watch.stop.abort();
            held.by_name -= 1;
            self.by_name -= 1;
            is_other = true;
        }
        is_other
    }

    pub(super) fn settle_all(&mut self, place: &KindInNamespace) {
        let Some(held) = self.places.get(place) else { return };
        let all: Vec<ObjectName> = held.objects.keys().cloned().collect();
        for name in all {
            self.settle(place, &name);
        }
    }

    /// Watches by name what a place is to have watched so, as far as its share goes.
    pub(super) async fn fill(&mut self, place: &KindInNamespace) -> Result<(), Closed> {
        let scope = self.scope_of(place);
        let Some((held, share)) = self.places.get(place).and_then(|held| Some((held, held.share?))) else {
            return Ok(());
        };
        let room = share.by_name.saturating_sub(held.by_name);
        let unwatched =
            |name: &&ObjectName| held.objects.get(*name).is_some_and(|named| named.watch.is_none());
        let Some(scope) = scope else {
            if share.width == Width::Refused {
                let message = format!(
                    "Objects are referred to in more than {} namespaces, and the list of all namespaces is forbidden.",
                    self.ground.options.names.watches
                );
                return self.refuse(place, 0, message).await;
            }
            let begun: Vec<ObjectName> = held.objects.keys().filter(unwatched).cloned().collect();
            self.begin_all(place, begun);
            return Ok(());
        };
        let Some(wide) = self.wide.get(&scope) else { return Ok(()) };
        if let Some(why) = &wide.forbidden {
            let message = format!(
                "{} objects of namespace {} are referred to, {} of them are watched by name, and the list of the \
                 namespace is forbidden: {why}",
                held.objects.len(),
                place.namespace,
                share.by_name
            );
            let begun: Vec<ObjectName> = held.objects.keys().filter(unwatched).take(room).cloned().collect();
            self.begin_all(place, begun);
            return self.refuse(place, share.by_name, message).await;
        }
        if !wide.is_complete() {
            return Ok(());
        }
        let late = || {
            let unsettled = held.unsettled.iter().filter(|name| !held.awaited.contains(*name));
            unsettled.filter(unwatched)
        };
        let many = self.ground.options.names.names_per_namespace;
        if share.width == Width::Namespace && late().take(many + 1).count() > many {
            if !wide.is_listing {
                let stop = self.begin_wide(&scope);
                if let Some(wide) = self.wide.get_mut(&scope) {
                    wide.restart(stop);
                }
            }
            return Ok(());
        }
        let begun: Vec<ObjectName> = late().take(room).cloned().collect();
        self.begin_all(place, begun);
        Ok(())
    }

    /// Keeps this many watches by name, and says of all other objects that they are forbidden.
    async fn refuse(&mut self, place: &KindInNamespace, most: usize, message: String) -> Result<(), Closed> {
        let Some(held) = self.places.get_mut(place) else { return Ok(()) };
        let mut refused = Vec::new();
        for (name, named) in held.objects.iter_mut().rev() {
            if held.by_name > most
                && let Some(watch) = named.watch.take()
            {
                watch.stop.abort();
                held.by_name -= 1;
                self.by_name -= 1;
            }
            if named.watch.is_none() && !matches!(named.told, State::Forbidden(_)) {
                refused.push(name.clone());
            }
        }
        for name in refused {
            let key = ObjectKey { kind: place.kind, name };
            self.tell(&key, State::Forbidden(message.clone()), None).await?;
        }
        Ok(())
    }

    fn begin_all(&mut self, place: &KindInNamespace, names: Vec<ObjectName>) {
        for name in names {
            let key = ObjectKey { kind: place.kind, name };
            let stop = self.begin(&key);
            if let Some(held) = self.places.get_mut(place)
                && let Some(named) = held.objects.get_mut(&key.name)
            {
                named.watch = Some(NameWatch { stop, state: State::Unknown });
                held.by_name += 1;
                self.by_name += 1;
            }
        }
    }

    fn begin(&mut self, key: &ObjectKey) -> AbortHandle {
        let (name, gate) = (key.clone(), self.gate.clone());
        let heard = move |sight| ReferencedEvent::Named(name.clone(), sight);
        self.run_stream(if key.kind == Kind::Secret {
            sights::<Secret>(&self.ground, key, gate).map(heard).boxed()
        } else {
            sights::<ConfigMap>(&self.ground, key, gate).map(heard).boxed()
        })
    }

    fn begin_wide(&mut self, scope: &Scope) -> AbortHandle {
        let (name, gate) = (scope.clone(), self.wide_gate.clone());
        let heard = move |sight| ReferencedEvent::Wide(name.clone(), sight);
        self.run_stream(if scope.kind == Kind::Secret {
            wide_sights::<Secret>(&self.wide_ground, scope, gate).map(heard).boxed()
        } else {
            wide_sights::<ConfigMap>(&self.wide_ground, scope, gate).map(heard).boxed()
        })
    }

    fn run_stream(&mut self, stream: BoxStream<'static, ReferencedEvent>) -> AbortHandle {
        let (stream, stop) = abortable(stream);
        self.streams.push(stream);
        stop
    }

    /// Ends wide watches that are not wanted any more and speak for no object.
    pub(super) fn end_wide(&mut self) {
        // All wanted wide watches run.
        if self.wide.len() == self.wanted_scopes.len() {
            return;
        }
        let speaks = |scope: &Scope| {
            let places = self.places.iter().filter(|(place, _)| scope.covers(place));
            let mut named = places.flat_map(|(_, held)| held.objects.values());
            named.any(|named| named.speaker == Speaker::of(scope) && named.told.is_settled())
        };
        let unwanted = self.wide.keys().filter(|scope| !self.wanted_scopes.contains(*scope));
        let ended: Vec<Scope> = unwanted.filter(|scope| !speaks(scope)).cloned().collect();
        for scope in ended {
            if let Some(wide) = self.wide.remove(&scope) {
                wide.stop.abort();
            }
        }
    }

    /// Ends a wide watch that is not wanted any more and knows nothing new. Those that are to take its place and disagree
    /// with it may never agree, so they begin anew.
    pub(super) fn abandon(&mut self, scope: &Scope) {
        if let Some(wide) = self.wide.remove(scope) {
            wide.stop.abort();
        }
        for place in self.covered(scope) {
            let Some(held) = self.places.get_mut(&place) else { continue };
            let mut again = Vec::new();
            for (name, named) in &mut held.objects {
                if named.speaker == Speaker::of(scope)
                    && let Some(watch) = named.watch.take_if(|watch| watch.state != named.told)
                {
                    watch.stop.abort();
                    held.by_name -= 1;
                    self.by_name -= 1;
                    again.push(name.clone());
                }
            }
            self.begin_all(&place, again);
        }
    }
}
