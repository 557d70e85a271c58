use pingsix_translate::infrastructure::Infrastructure;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::*;
use crate::provision::tests::{gateway, installation, material};
use crate::provision::{Child, ChildKind, PlaneSecrets, objects};

fn keyring(keys: &[&str]) -> Keyring {
    Keyring(keys.iter().map(|key| (*key).to_owned()).collect())
}

/// The message for a missing Secret of this name.
fn gone(secret: &str) -> MissingKeysError {
    MissingKeysError::NoSecret(ObjectName::new("infra", secret))
}

/// The encrypting key, and the keyring of processes.
fn planned(asked: Option<Result<&[&str], &str>>, deployed: Option<&[&str]>) -> (String, Vec<String>) {
    let asked = asked.map(|asked| asked.map(keyring).map_err(gone));
    let deployed = deployed.map_or(DeployedKeys::NoProcess, |deployed| DeployedKeys::All(keyring(deployed)));
    let KeyPlan { seal, processes } = plan(asked.as_ref(), &deployed);
    let seal = match seal {
        Ok(Some(key)) => key,
        Ok(None) => "plaintext".to_owned(),
        Err(why) => format!("nothing: {why}"),
    };
    (seal, processes.map_or_else(|why| vec![format!("as they are: {why}")], |keys| keys.0))
}

#[test]
fn a_key_encrypts_that_all_processes_have() {
    let is = |asked: Option<Result<&[&str], &str>>, deployed: Option<&[&str]>, seal: &str, next: &[&str]| {
        let (sealed, processes) = planned(asked, deployed);
        assert_eq!((sealed.as_str(), processes), (seal, keyring(next).0), "{asked:?} {deployed:?}");
    };
    // A Gateway that is new, and one that ran without a key.
    is(Some(Ok(&["new", "old"])), None, "new", &["new", "old"]);
    is(Some(Ok(&["new"])), Some(&[]), "plaintext", &["new"]);
    is(Some(Ok(&["new"])), Some(&["new"]), "new", &["new"]);
    // A rotation.
    is(Some(Ok(&["new", "old"])), Some(&["old"]), "old", &["new", "old"]);
    is(Some(Ok(&["new", "old"])), Some(&["new", "old"]), "new", &["new", "old"]);
    is(Some(Ok(&["new"])), Some(&["new", "old"]), "new", &["new"]);
    // In one step: the one before is kept until the new one is there.
    is(Some(Ok(&["new"])), Some(&["old"]), "old", &["new", "old"]);
    // The encryption is switched off.
    is(None, Some(&["old"]), "plaintext", &[]);
    is(None, None, "plaintext", &[]);
    // There are no keys to be had.
    let said = "Secret \"infra/gone\" with the keyring does not exist.";
    let kept = format!("as they are: {said}");
    is(Some(Err("gone")), Some(&["old"]), "old", &[&kept]);
    is(Some(Err("gone")), Some(&[]), "plaintext", &[&kept]);
    is(Some(Err("gone")), None, &format!("nothing: {said}"), &[&kept]);
}

#[test]
fn a_key_record_is_read_as_written_and_is_absent_before_the_first_key() {
    let record = |edition, keys: &[&str], deployed: &[&str]| KeyRecord {
        edition,
        keyring: keyring(keys),
        deployed: keyring(deployed),
    };
    let read = |text: Option<String>| {
        let text = text.unwrap_or_default();
        KeyRecord::of(&json!({"data": {RECORD: ByteString(text.into_bytes())}}))
    };
    for record in [record(3, &["new", "old"], &["old"]), record(4, &[], &[]), KeyRecord::default()] {
        assert_eq!(read(record.to_text()), record);
    }
    assert_eq!(KeyRecord::default().to_text(), None);
    // The record may have any content.
    assert_eq!(read(Some("[7]".to_owned())), KeyRecord::default());
}

#[test]
fn a_keyring_that_comes_back_is_another_one() {
    let first = KeyRecord::default().next(None, keyring(&["a"]), &DeployedKeys::NoProcess);
    assert_eq!((first.edition, &first.deployed), (1, &first.keyring));
    let deployed = DeployedKeys::All(first.deployed.clone());
    assert_eq!(first.next(None, keyring(&["a"]), &deployed), first);
    let off = first.next(None, keyring(&[]), &deployed);
    assert_eq!((off.edition, &off.deployed), (2, &keyring(&[])));
    let again = off.next(None, keyring(&["a"]), &DeployedKeys::All(off.deployed.clone()));
    assert_eq!((again.edition, &again.deployed), (3, &keyring(&[])));
    // A deleted Secret is made anew, with the number after that of the keyring of the Pods.
    let deployment = json!({"spec": {"template": {"metadata": {"annotations": {EDITION: "3"}}}}});
    let rollout = Rollout::of(&deployment);
    let anew = KeyRecord::default().next(Some(&rollout), keyring(&["a"]), &DeployedKeys::All(keyring(&[])));
    assert_eq!((anew.edition, &anew.deployed), (4, &keyring(&[])));
}

/// A process that may run, with the keyring of its start.
struct Pod {
    template: Value,
    keys: Keyring,
    is_ending: bool,
}

/// The seeded error of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// The first key encrypts, whoever has it.
    Hasty,
    /// Pods that are about to end do not count.
    Impatient,
    /// A keyring that comes back is taken for the one that was there.
    Forgetful,
}

/// A Gateway with the state of its keys, and the events that may change the state.
struct World {
    defect: Defect,
    random: StdRng,
    infrastructure: Infrastructure,
    asked: Option<Result<Keyring, MissingKeysError>>,
    asked_before: Option<Result<Keyring, MissingKeysError>>,
    secret: Option<Value>,
    deployment: Option<Value>,
    pods: Vec<Pod>,
    /// The objects that the rest of a pass would apply.
    rest: Option<Child>,
}

impl World {
    fn new(seed: u64, defect: Defect) -> Self {
        let infrastructure = gateway(&[443]);
        let random = StdRng::seed_from_u64(seed);
        let (asked, asked_before, secret, deployment) = (None, None, None, None);
        Self {
            defect,
            random,
            infrastructure,
            asked,
            asked_before,
            secret,
            deployment,
            pods: Vec::new(),
            rest: None,
        }
    }

    /// The keys of processes that a replica observes; the leader may know that no other Pod is left.
    fn deployed(&self, is_over: bool) -> DeployedKeys {
        let Some(deployment) = &self.deployment else { return DeployedKeys::NoProcess };
        DeployedKeys::All(self.record().deployed(&Rollout::of(deployment), is_over).clone())
    }

    fn record(&self) -> KeyRecord {
        self.secret.as_ref().map(KeyRecord::of).unwrap_or_default()
    }

    fn plan(&self) -> KeyPlan {
        let mut plan = plan(self.asked.as_ref(), &self.deployed(false));
        if let (Defect::Hasty, Some(Ok(asked))) = (self.defect, &self.asked) {
            plan.seal = Ok(asked.0.first().cloned());
        }
        plan
    }

    /// Whether only Pods of the template are left, according to the status of Pods that are not terminating.
    fn is_over(&self) -> bool {
        let Some(deployment) = &self.deployment else { return false };
        let counts = self.defect != Defect::Impatient;
        let is_other = |pod: &&Pod| counts && pod.is_ending && pod.template != deployment["spec"]["template"];
        Rollout::of(deployment).is_complete && self.pods.iter().find(is_other).is_none()
    }

    /// The first half of a pass: the Secret. The other half may follow, later, or never.
    fn begin_pass(&mut self) {
        let Ok(keyring) = self.plan().processes else { return };
        let rollout = self.deployment.as_ref().map(Rollout::of);
        let mut keys = self.record().next(rollout.as_ref(), keyring, &self.deployed(self.is_over()));
        if self.defect == Defect::Forgetful {
            keys.edition = 1;
        }
        let material = PlaneSecrets { keys, ..material(&self.infrastructure.owner) };
        let made = objects(&self.infrastructure, &installation(), &material).unwrap();
        let of = |name: &str| made.children.iter().find(|child| &*child.name.name == name).unwrap();
        self.secret = Some(of("web-pingsix-config").object.clone());
        let deployment = made.children.iter().find(|child| child.kind == ChildKind::Deployment);
        self.rest = deployment.cloned();
    }

    fn end_pass(&mut self) {
        let Some(Child { mut object, .. }) = self.rest.take() else { return };
        let before = self.deployment.take().unwrap_or_default();
        let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
        let is_other = before["spec"]["template"] != object["spec"]["template"];
        object["metadata"]["generation"] = json!(generation + i64::from(is_other));
        object["status"] = before["status"].clone();
        self.deployment = Some(object);
        self.count();
    }

    /// The controller of Deployments counts, as of what it has seen.
    fn count(&mut self) {
        let Some(deployment) = &mut self.deployment else { return };
        let live = self.pods.iter().filter(|pod| !pod.is_ending);
        let of_template = live.clone().filter(|pod| pod.template == deployment["spec"]["template"]).count();
        deployment["status"]["replicas"] = json!(live.count());
        deployment["status"]["updatedReplicas"] = json!(of_template);
    }

    fn keys_of_a_start(&self) -> Keyring {
        self.record().keyring
    }

    fn step(&mut self) {
        let pods = self.pods.len();
        match self.random.random_range(0..14) {
            0 => self.ask(),
            1 | 2 => self.begin_pass(),
            3 | 4 => self.end_pass(),
            // A pass that is broken off, as when the controller is killed.
            5 => self.rest = None,
            6 | 7 => {
                let Some(deployment) = &mut self.deployment else { return };
                deployment["status"]["observedGeneration"] = deployment["metadata"]["generation"].clone();
                if pods < 4 {
                    let (template, keys) = (deployment["spec"]["template"].clone(), self.keys_of_a_start());
                    self.pods.push(Pod { template, keys, is_ending: false });
                }
            }
            8 | 9 if pods > 0 => {
                let index = self.random.random_range(0..pods);
                let template = self.deployment.as_ref().map(|deployment| &deployment["spec"]["template"]);
                let pod = &mut self.pods[index];
                pod.is_ending |= Some(&pod.template) != template || self.random.random_bool(0.2);
            }
            10 if pods > 0 => {
                let index = self.random.random_range(0..pods);
                if self.pods[index].is_ending {
                    self.pods.remove(index);
                }
            }
            // The process crashes, and reads the present Secret.
            11..=13 if pods > 0 => {
                let index = self.random.random_range(0..pods);
                self.pods[index].keys = self.keys_of_a_start();
            }
            _ => {}
        }
        self.count();
    }

    fn ask(&mut self) {
        let mut keys = vec!["a", "b", "c"];
        keys.shuffle(&mut self.random);
        keys.truncate(self.random.random_range(1..=3));
        let next = match self.random.random_range(0..9) {
            0 => None,
            1 => Some(Err(gone("keys"))),
            // Somebody changes their mind.
            2..=5 => self.asked_before.take(),
            _ => Some(Ok(keyring(&keys))),
        };
        self.asked_before = std::mem::replace(&mut self.asked, next);
    }

    /// Whether every process can read its documents, and gets documents at all.
    fn is_read_by_all(&self) -> bool {
        match self.plan().seal {
            Err(_) => self.pods.is_empty(),
            Ok(None) => true,
            Ok(Some(key)) => self.pods.iter().all(|pod| pod.keys.0.contains(&key)),
        }
    }

    /// Runs all steps to their end.
    fn rest(&mut self) {
        for _ in 0..8 {
            self.begin_pass();
            self.end_pass();
            let Some(deployment) = &mut self.deployment else { return };
            deployment["status"]["observedGeneration"] = deployment["metadata"]["generation"].clone();
            let template = deployment["spec"]["template"].clone();
            self.pods.retain(|pod| pod.template == template && !pod.is_ending);
            let keys = self.keys_of_a_start();
            self.pods.push(Pod { template, keys, is_ending: false });
            self.count();
            assert!(self.is_read_by_all());
        }
    }
}

#[test]
fn every_process_reads_its_documents_and_the_first_key_seals_in_the_end() {
    let mut sealed = 0;
    for seed in 0..50 {
        let mut world = World::new(seed, Defect::None);
        for _ in 0..200 {
            world.step();
            assert!(world.is_read_by_all(), "{seed}: {:?} {:?}", world.asked, world.record());
            sealed += usize::from(!world.pods.is_empty() && matches!(world.plan().seal, Ok(Some(_))));
        }
        if let Some(Err(_)) = world.asked {
            continue;
        }
        world.rest();
        let first = world.asked.as_ref().and_then(|asked| asked.as_ref().ok()?.0.first().cloned());
        assert_eq!(world.plan().seal, Ok(first), "{seed}");
        let asked = world.asked.clone().map_or_else(Keyring::default, Result::unwrap);
        assert_eq!(world.deployed(false), DeployedKeys::All(asked), "{seed}");
    }
    assert!(sealed > 500, "{sealed}");
}

#[test]
fn a_controller_that_goes_about_it_otherwise_is_found_out() {
    for defect in [Defect::Hasty, Defect::Impatient, Defect::Forgetful] {
        let mut fails = (0..500).map(|seed| {
            let mut world = World::new(seed, defect);
            (0..200).any(|_| {
                world.step();
                !world.is_read_by_all()
            })
        });
        assert!(fails.any(|fails| fails), "{defect:?}");
    }
}
