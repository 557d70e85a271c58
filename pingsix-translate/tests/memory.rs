//! The heap that a translation takes at its peak is bounded by the bytes of its objects, whatever certificates, server names
//! and hosts they have.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that says what it measures")]

use std::sync::Arc;

use pingsix_translate::status::Reason;
use pingsix_translate::{Object, ObjectName, Objects, Options, Translation, translate, translate_ingress};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Bytes of heap for each byte of the objects.
const HEAP_BYTES_PER_INPUT_BYTE: usize = 20;

/// Bytes of heap that every translation may take besides.
const FIXED_HEAP_BYTES: usize = 64 * 1024;

/// Objects, and how many bytes of JSON they are.
#[derive(Default)]
struct Counted {
    objects: Objects,
    bytes: usize,
}

impl Counted {
    fn add<K: DeserializeOwned>(&mut self, object: fn(Arc<K>) -> Object, value: &Value) {
        let text = value.to_string();
        self.bytes += text.len();
        self.objects.insert(object(Arc::new(serde_json::from_str(&text).unwrap())));
    }

    /// A Secret with a certificate for these names.
    fn certificate(&mut self, name: &str, names: Vec<String>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        self.add(
            Object::Secret,
            &json!({
                "metadata": {"namespace": "shop", "name": name}, "type": "kubernetes.io/tls",
                "stringData": {"tls.crt": certificate.pem(), "tls.key": key.serialize_pem()},
            }),
        );
    }

    fn ingress(&mut self, name: &str, spec: &Value) {
        let mut spec = spec.clone();
        spec["ingressClassName"] = "pingsix".into();
        self.add(
            Object::Ingress,
            &json!({"metadata": {"namespace": "shop", "name": name, "generation": 1}, "spec": spec}),
        );
    }

    fn ingress_class(&mut self) {
        self.add(
            Object::IngressClass,
            &json!({
                "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
            }),
        );
    }

    fn translate_ingress(&self) -> Translation {
        translate_ingress(&self.objects.ingress_snapshot("pingsix").unwrap(), &Options::default())
    }

    fn translate_gateway(&self) -> Translation {
        let snapshot = self.objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
        translate(&snapshot, &Options::default())
    }

    /// The translation, after checking how much heap it took.
    fn measured(&self, case: &str, translate: fn(&Self) -> Translation) -> Translation {
        let profiler = dhat::Profiler::builder().testing().trim_backtraces(Some(0)).build();
        let translation = translate(self);
        let peak = dhat::HeapStats::get().max_bytes;
        drop(profiler);
        println!("| {case} | {} | {peak} | {} |", self.bytes, peak / self.bytes);
        assert!(
            peak <= FIXED_HEAP_BYTES + HEAP_BYTES_PER_INPUT_BYTE * self.bytes,
            "{case}: {peak} bytes of heap for {} bytes",
            self.bytes
        );
        translation
    }
}

/// Names of some twelve characters.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("n{index:05}.test")).collect()
}

/// The number of served server names and of their documents.
fn served(translation: &Translation) -> (usize, usize) {
    let plane = translation.data_planes.values().next().unwrap();
    (plane.config.ssls().map(|(_, ssl)| ssl.snis.len()).sum(), plane.config.ssls().count())
}

/// The refusals of certificates: fields with their reasons.
fn refused(translation: &Translation) -> Vec<(String, Reason)> {
    let problems = translation.verdicts.problems.iter();
    let told = problems.map(|problem| (problem.field.to_string(), problem.reason));
    told.filter(|(field, _)| field.contains("tls")).collect()
}

fn certificate_with_many_names(count: usize) -> Counted {
    let mut counted = Counted::default();
    counted.ingress_class();
    counted.certificate("many", names(count));
    counted.certificate("one", vec!["one.test".to_owned()]);
    counted.ingress("many", &json!({"tls": [{"secretName": "many"}]}));
    counted.ingress("one", &json!({"tls": [{"hosts": ["one.test"], "secretName": "one"}]}));
    counted
}

fn hosts_of_one_certificate(count: usize) -> Counted {
    let mut counted = Counted::default();
    counted.ingress_class();
    counted.certificate("one", vec!["one.test".to_owned()]);
    counted.ingress("many", &json!({"tls": [{"hosts": names(count), "secretName": "one"}]}));
    counted.ingress("one", &json!({"tls": [{"hosts": ["one.test"], "secretName": "one"}]}));
    counted
}

/// Each with one certificate.
fn ingresses(count: usize) -> Counted {
    let mut counted = Counted::default();
    counted.ingress_class();
    counted.certificate("many", names(1_000));
    for (index, name) in names(count).iter().enumerate() {
        counted.ingress(&format!("i{index}"), &json!({"tls": [{"hosts": [name], "secretName": "many"}]}));
    }
    counted
}

/// Listeners that all refer to the same certificates.
fn listeners(listeners: usize, certificates: usize, names_each: usize) -> Counted {
    let mut counted = Counted::default();
    let references: Vec<Value> =
        (0..certificates).map(|index| json!({"name": format!("c{index}")})).collect();
    for index in 0..certificates {
        let names = (0..names_each).map(|name| format!("n{name}-{index}.l{}.test", name % listeners));
        counted.certificate(&format!("c{index}"), names.collect());
    }
    let listeners: Vec<Value> = (0..listeners)
        .map(|index| {
            json!({
                "name": format!("l{index}"), "port": 443, "protocol": "HTTPS",
                "hostname": format!("*.l{index}.test"), "tls": {"certificateRefs": references},
            })
        })
        .collect();
    counted.add(
        Object::Gateway,
        &json!({
            "metadata": {"namespace": "shop", "name": "gateway", "generation": 1},
            "spec": {"gatewayClassName": "pingsix", "listeners": listeners},
        }),
    );
    counted
}

/// The cases run in sequence, because the allocator counts for the whole process.
#[test]
fn a_translation_takes_a_small_multiple_of_the_bytes_of_its_objects() {
    println!("| objects | bytes | peak of heap | times |\n|---|---|---|---|");
    let ingress = Counted::translate_ingress;
    let translation = certificate_with_many_names(4_000).measured("4,000 names of a certificate", ingress);
    assert_eq!(served(&translation), (4_001, 2));

    let translation = certificate_with_many_names(10_000).measured("10,000 names of a certificate", ingress);
    assert_eq!(served(&translation), (1, 1));
    assert_eq!(refused(&translation), [("spec.tls[0].secretName".to_owned(), Reason::InvalidCertificateRef)]);

    let translation = hosts_of_one_certificate(900).measured("900 hosts of one certificate", ingress);
    assert_eq!(served(&translation), (901, 1));

    let translation = hosts_of_one_certificate(50_000).measured("50,000 hosts of one certificate", ingress);
    assert_eq!(served(&translation), (1, 1));
    assert_eq!(refused(&translation), [("spec.tls[0]".to_owned(), Reason::UnsupportedValue)]);

    let translation = ingresses(1_000).measured("1,000 Ingresses that share a certificate", ingress);
    assert_eq!(served(&translation), (1_000, 1));

    let mut invalid = Counted::default();
    invalid.ingress_class();
    invalid.certificate("one", vec!["one.test".to_owned()]);
    invalid.ingress("i", &json!({"tls": [{"hosts": vec!["!"; 4_000], "secretName": "one"}]}));
    let translation = invalid.measured("4,000 hosts that are none", ingress);
    assert_eq!(refused(&translation).len(), 9);

    let mut entries = Counted::default();
    entries.ingress_class();
    entries.ingress("i", &json!({"tls": vec![json!({}); 50_000]}));
    let translation = entries.measured("50,000 entries of spec.tls without a Secret", ingress);
    let told = refused(&translation);
    assert_eq!(
        told.iter().filter(|(_, reason)| *reason == Reason::Limited).count(),
        4_097,
        "{:?}",
        &told[4_090..]
    );
    assert_eq!(told.iter().filter(|(_, reason)| *reason == Reason::UnsupportedValue).count(), 1);

    let rule = |host: &String| {
        json!({"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}})
    };
    let mut rules = Counted::default();
    rules.ingress_class();
    rules.ingress("i", &json!({"rules": names(10_000).iter().map(rule).collect::<Vec<_>>()}));
    rules.measured("10,000 rules of an Ingress", ingress);

    // A host has a wider name for each of its labels, and no two hosts share one.
    let hosts = (0..1_000).map(|index| format!("{}h{index}.test", "a.".repeat(110)));
    let mut labels = Counted::default();
    labels.ingress_class();
    labels.ingress("i", &json!({"rules": hosts.map(|host| rule(&host)).collect::<Vec<_>>()}));
    labels.measured("1,000 rules for hosts of 112 labels", ingress);

    let gateway = Counted::translate_gateway;
    let translation = listeners(64, 64, 64).measured("64 listeners with 64 certificates each", gateway);
    assert_eq!(served(&translation), (4_160, 64));

    let translation = listeners(64, 1, 3_000).measured("64 listeners that share 3,000 names", gateway);
    assert_eq!(served(&translation), (64, 1));

    let translation = listeners(64, 64, 1_000).measured("the same with too many names", gateway);
    assert_eq!(served(&translation).1, 4);
    let told = refused(&translation);
    assert_eq!(told.iter().filter(|(_, reason)| *reason == Reason::InvalidCertificateRef).count(), 64 * 60);
}
