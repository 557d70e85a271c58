//! A request for a protected part that lacks what the part demands, spelled by some tricks.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::site::{Demand, Part, Site, Visitor};
use super::spellings::{SPELLINGS, Spelling};
use crate::client::Protocol;
use crate::expectations::good_token;
use crate::rng::SeededRng;

/// The address of a client that the demands on addresses refuse, and of one that they admit.
const REFUSED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);
const ADMITTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// The same behind a proxy.
const REFUSED_BEHIND: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
const ADMITTED_BEHIND: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// The trusted proxy.
pub(super) const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);

/// A request before it is written for a protocol.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) method: String,
    /// Scheme and authority of a target in absolute form.
    pub(super) origin: Option<String>,
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// Over HTTP/1.1 the lines `Host`; over HTTP/2 `:authority`, then lines `host`.
    pub(super) hosts: Vec<String>,
    /// Over HTTP/2, all hosts are lines.
    pub(super) without_authority: bool,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) protocol: Protocol,
    /// The name that a TLS client asks for.
    pub(super) sni: String,
    /// The peer of the connection.
    pub(super) peer: Ipv4Addr,
    /// Whether PingSIX listens on an IPv6 socket.
    pub(super) mapped: bool,
    pub(super) forwarded: Forwarded,
    pub(super) visitor: Visitor,
}

/// The content of `X-Forwarded-For`.
#[derive(Clone, Debug, Default)]
pub(super) struct Forwarded {
    /// The line of the client itself.
    pub(super) claimed: Option<Vec<u8>>,
    /// The client as the proxy writes it, unless it comes from elsewhere.
    pub(super) client: Option<String>,
    /// The proxy writes a line of its own.
    pub(super) is_apart: bool,
    /// The proxy removes the header and writes none.
    pub(super) is_removed: bool,
}

impl Forwarded {
    /// The values of the lines.
    fn lines(&self) -> Vec<Vec<u8>> {
        match (&self.claimed, &self.client) {
            _ if self.is_removed => Vec::new(),
            (Some(claimed), Some(client)) if self.is_apart => {
                vec![claimed.clone(), client.clone().into_bytes()]
            }
            (Some(claimed), Some(client)) => vec![[claimed, b", ".as_slice(), client.as_bytes()].concat()],
            (Some(claimed), None) => vec![claimed.clone()],
            (None, Some(client)) => vec![client.clone().into_bytes()],
            (None, None) => Vec::new(),
        }
    }
}

impl Draft {
    pub(super) fn header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
    }

    /// Path and query.
    pub(super) fn target(&self) -> String {
        self.path.clone() + &self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default()
    }

    fn with_forwarded(mut self) -> Self {
        for line in self.forwarded.lines() {
            self.header("X-Forwarded-For", line);
        }
        self
    }
}

/// The site and the part for which a spelling is chosen.
pub(super) struct Scene<'s> {
    pub(super) site: &'s Site,
    pub(super) part: &'s Part,
    /// The index of an open part on another host.
    pub(super) cover: Option<usize>,
    /// Chooses among variants of a spelling.
    pub(super) roll: usize,
}

/// An attack, which gives the same request each time.
#[derive(Clone, Debug)]
pub(super) struct Attack {
    /// The index of the protected part.
    pub(super) part: usize,
    pub(super) spellings: Vec<(&'static Spelling, usize)>,
    base: Base,
    /// Whether the request goes past the cache.
    is_fresh: bool,
}

/// The request without spellings.
#[derive(Clone, Copy, Debug)]
struct Base {
    host: usize,
    path: usize,
    protocol: Protocol,
    /// A TLS client asks for another name.
    other_name: bool,
    address: Ipv4Addr,
    peer: Ipv4Addr,
    method: &'static str,
    credential: bool,
    cover: Option<usize>,
}

impl Attack {
    /// An attack on a site that has a protected part.
    pub(super) fn draw(rng: &mut SeededRng, site: &Site) -> Self {
        let protected: Vec<usize> =
            (0..site.parts.len()).filter(|&index| !site.parts[index].is_open()).collect();
        let part = protected[rng.below(protected.len())];
        let Part { hosts, demands, .. } = &site.parts[part];
        let covers: Vec<usize> = (0..site.parts.len())
            .filter(|&index| site.parts[index].is_open() && site.parts[index].hosts != *hosts)
            .collect();
        // At least one demand is violated.
        let violated = &demands[rng.below(demands.len())];
        let is_by_address = matches!(violated, Demand::Addresses { .. });
        let is_by_method = matches!(violated, Demand::Methods(_));
        let protocol = match rng.below(8) {
            0..4 => Protocol::Http1,
            4 | 5 => Protocol::HttpsHttp2,
            6 => Protocol::H2c,
            _ => Protocol::HttpsHttp1,
        };
        let behind = site.parts[part].has_proxies() && rng.percent(60);
        let address = address(behind, !is_by_address && rng.percent(60));
        let base = Base {
            host: rng.below(8),
            path: rng.below(8),
            protocol,
            other_name: rng.percent(20),
            address,
            peer: if behind { PROXY } else { address },
            method: method(&site.parts[part], !is_by_method && rng.percent(70)),
            credential: (is_by_address || is_by_method) && rng.percent(50),
            cover: (!covers.is_empty()).then(|| covers[rng.below(covers.len())]),
        };
        let count = [0, 1, 1, 1, 1, 2, 2, 3][rng.below(8)];
        let spellings =
            (0..count).map(|_| (&SPELLINGS[rng.below(SPELLINGS.len())], rng.below(1 << 16))).collect();
        Self { part, spellings, base, is_fresh: false }
    }

    /// The request of an ordinary client for a part.
    pub(super) fn control(rng: &mut SeededRng, site: &Site, part: usize, protocol: Protocol) -> Draft {
        let behind = site.parts[part].has_proxies();
        let address = address(behind, true);
        let base = Base {
            host: rng.below(8),
            path: rng.below(8),
            protocol,
            other_name: false,
            address,
            peer: if behind { PROXY } else { address },
            method: method(&site.parts[part], true),
            credential: true,
            cover: None,
        };
        base.draft(part, site).with_forwarded()
    }

    /// The attack without one of its spellings.
    pub(super) fn without(&self, spelling: usize) -> Self {
        let mut fewer = self.clone();
        fewer.spellings.remove(spelling);
        fewer
    }

    /// The same attack past the cache.
    pub(super) fn fresh(&self) -> Self {
        Self { is_fresh: true, ..self.clone() }
    }

    /// The same attack for another host of the part.
    pub(super) fn for_next_host(mut self) -> Self {
        self.base.host += 1;
        self
    }

    /// The same attack without the part of this index, which is another one.
    pub(super) fn after_removal(&self, removed: usize) -> Self {
        let mut moved = self.clone();
        moved.part -= usize::from(removed < self.part);
        moved.base.cover = match self.base.cover {
            Some(cover) if cover == removed => None,
            cover => cover.map(|cover| cover - usize::from(removed < cover)),
        };
        moved
    }

    /// The names of the spellings.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.spellings.iter().map(|(spelling, _)| spelling.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(super) fn draft(&self, site: &Site) -> Draft {
        let part = &site.parts[self.part];
        let mut draft = self.base.draft(self.part, site);
        for (spelling, roll) in &self.spellings {
            let scene = Scene { site, part, cover: self.base.cover, roll: *roll };
            (spelling.apply)(&mut draft, &scene);
        }
        if self.is_fresh {
            draft.header("X-Bypass-Cache", "1");
        }
        draft.with_forwarded()
    }
}

impl Base {
    fn draft(&self, index: usize, site: &Site) -> Draft {
        let part = &site.parts[index];
        let samples = part.path.samples();
        let host = part.sample_host(self.host);
        let visitor =
            Visitor { address: self.address.into(), credential_of: self.credential.then_some(index) };
        let sni = if self.other_name { "open.example".to_owned() } else { host.clone() };
        let mut draft = Draft {
            method: self.method.to_owned(),
            origin: None,
            path: samples[self.path % samples.len()].clone(),
            query: None,
            hosts: vec![host],
            without_authority: false,
            headers: Vec::new(),
            protocol: self.protocol,
            sni,
            peer: self.peer,
            mapped: false,
            forwarded: Forwarded {
                client: (self.peer == PROXY).then(|| self.address.to_string()),
                ..Forwarded::default()
            },
            visitor,
        };
        if self.credential {
            add_credentials(&mut draft, part);
        }
        draft
    }
}

/// An address, behind the proxy or not.
const fn address(behind: bool, admitted: bool) -> Ipv4Addr {
    match (behind, admitted) {
        (false, false) => REFUSED,
        (false, true) => ADMITTED,
        (true, false) => REFUSED_BEHIND,
        (true, true) => ADMITTED_BEHIND,
    }
}

/// A method of a part, or one that its demands refuse.
fn method(part: &Part, admitted: bool) -> &'static str {
    let methods = part.demands.iter().find_map(|demand| match demand {
        Demand::Methods(methods) => Some(methods),
        Demand::Key { .. } | Demand::User | Demand::Token | Demand::Addresses { .. } | Demand::Impossible => {
            None
        }
    });
    match methods {
        Some(methods) if admitted => methods[0],
        Some(_) => "DELETE",
        None => part.method.unwrap_or("GET"),
    }
}

/// Adds the credentials of a part.
pub(super) fn add_credentials(draft: &mut Draft, part: &Part) {
    for demand in &part.demands {
        match demand {
            Demand::Key { header, parameter: None } => draft.header(header.unwrap_or("apikey"), part.key()),
            Demand::Key { parameter: Some(name), .. } => draft.query = Some(format!("{name}={}", part.key())),
            Demand::User => {
                let user = STANDARD.encode(format!("alice:{}", part.password()));
                draft.header("Authorization", format!("Basic {user}"));
            }
            Demand::Token => {
                let request = good_token();
                draft.header("Authorization", request.first_header("authorization").unwrap());
            }
            Demand::Addresses { .. } | Demand::Methods(_) | Demand::Impossible => {}
        }
    }
}
