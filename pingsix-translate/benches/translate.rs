//! Full translation by shape and size, and the growth of its output.

mod shapes;

use std::hint::black_box;
use std::io::Write as _;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pingsix_translate::pingsix::validate::{ValidateOptions, validate};
use pingsix_translate::{
    Budget, IngressSnapshot, Options, Snapshot, Translation, Translator, translate, translate_ingress,
};
use shapes::{
    Shape, certified, ingress_snapshot, snapshot, with_other_certificate, with_other_endpoint,
    with_other_endpoint_of_ingress, with_other_ingress, with_other_key, with_other_listener,
    with_other_policy, with_other_route, with_policy,
};

const SHAPES: [Shape; 3] = [Shape::FlatHosts, Shape::SharedHost, Shape::NestedPrefixes];
const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// A large budget, because the benchmark does not measure budgets.
fn options() -> Options {
    let responder = Some(([127, 0, 0, 1], 8089).into());
    Options {
        budget: Budget { bytes: usize::MAX, matcher_entries: usize::MAX },
        responder,
        ..Options::default()
    }
}

fn report(shape: Shape, routes: usize, snapshot: &Snapshot) {
    let translation = translate(snapshot, &options());
    let mut out = std::io::stdout().lock();
    for data_plane in translation.data_planes.values() {
        // The report is optional.
        let _ = writeln!(
            out,
            "size of {} with {routes} routes: {} documents, {} bytes, {} matcher entries",
            shape.name(),
            data_plane.config.len(),
            data_plane.size.bytes,
            data_plane.size.matcher_entries,
        );
    }
}

fn full_translation(criterion: &mut Criterion) {
    let options = options();
    let mut group = criterion.benchmark_group("translate");
    group.sample_size(10);
    let flat = SHAPES.into_iter().flat_map(|shape| SIZES.map(|size| (shape, size)));
    for (shape, routes) in flat.chain([(Shape::Wildcard, 100), (Shape::Wildcard, 1_000)]) {
        let snapshot = snapshot(shape, routes);
        report(shape, routes, &snapshot);
        group.throughput(Throughput::Elements(routes as u64 * 3));
        group.bench_with_input(BenchmarkId::new(shape.name(), routes), &snapshot, |bencher, snapshot| {
            // Dropping the output of an earlier translation is not measured.
            bencher.iter_with_large_drop(|| translate(black_box(snapshot), &options));
        });
    }
    for ingresses in SIZES {
        let snapshot = ingress_snapshot(Shape::FlatHosts, ingresses);
        group.throughput(Throughput::Elements(ingresses as u64 * 3));
        let id = BenchmarkId::new("flat hosts of Ingresses", ingresses);
        group.bench_with_input(id, &snapshot, |bencher, snapshot| {
            bencher.iter_with_large_drop(|| translate_ingress(black_box(snapshot), &options));
        });
    }
    group.finish();
}

/// A change of one object and its reversal.
fn change(criterion: &mut Criterion) {
    for (name, other) in [
        ("one route changed", with_other_route as fn(&Snapshot) -> Snapshot),
        ("one endpoint changed", with_other_endpoint),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        for (shape, routes) in [Shape::FlatHosts, Shape::SharedHost]
            .into_iter()
            .flat_map(|shape| SIZES.map(|size| (shape, size)))
        {
            let one = snapshot(shape, routes);
            let id = BenchmarkId::new(shape.name(), routes);
            back_and_forth(&mut group, id, Translator::translate, &[other(&one), one]);
        }
        group.finish();
    }
    let mut group = criterion.benchmark_group("one certificate changed");
    group.sample_size(20);
    for listeners in [100, 1_000] {
        let one = certified(listeners);
        let id = BenchmarkId::new("listeners", listeners);
        back_and_forth(&mut group, id, Translator::translate, &[with_other_certificate(&one), one]);
    }
    group.finish();
}

/// A change of one object of a data plane that refuses its youngest rules.
fn change_over_budget(criterion: &mut Criterion) {
    for (name, other) in [
        ("one route changed, over the budget", with_other_route as fn(&Snapshot) -> Snapshot),
        ("one endpoint changed, over the budget", with_other_endpoint),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        for routes in SIZES {
            let one = snapshot(Shape::FlatHosts, routes);
            let size = translate(&one, &options()).data_planes.values().next().map(|plane| plane.size);
            let bytes = size.map_or(0, |size| size.bytes);
            let options = Options { budget: Budget { bytes, ..options().budget }, ..options() };
            let id = BenchmarkId::new(Shape::FlatHosts.name(), routes);
            back_and_forth_with(options, &mut group, id, Translator::translate, &[other(&one), one]);
        }
        group.finish();
    }
}

/// A change of a policy of the Gateway, or of its Secret, and the reversal.
fn change_of_policy(criterion: &mut Criterion) {
    for (name, one, other) in [
        (
            "one policy of the Gateway added or removed",
            Snapshot::clone as fn(&Snapshot) -> Snapshot,
            with_policy as fn(&Snapshot) -> Snapshot,
        ),
        ("a full translation with its cache", with_policy, |one| with_other_listener(&with_policy(one))),
        ("one policy of the Gateway changed", with_policy, with_other_policy),
        ("one API key rotated", with_policy, with_other_key),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        for (shape, routes) in [Shape::FlatHosts, Shape::SharedHost]
            .into_iter()
            .flat_map(|shape| SIZES.map(|size| (shape, size)))
        {
            let without = snapshot(shape, routes);
            let id = BenchmarkId::new(shape.name(), routes);
            back_and_forth(&mut group, id, Translator::translate, &[other(&without), one(&without)]);
        }
        group.finish();
    }
}

/// A change of one object of an IngressClass and its reversal.
fn change_of_ingress_class(criterion: &mut Criterion) {
    for (name, other) in [
        ("one Ingress changed", with_other_ingress as fn(&IngressSnapshot) -> IngressSnapshot),
        ("one endpoint of an Ingress changed", with_other_endpoint_of_ingress),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        for (shape, ingresses) in [Shape::FlatHosts, Shape::SharedHost]
            .into_iter()
            .flat_map(|shape| SIZES.map(|size| (shape, size)))
        {
            let one = ingress_snapshot(shape, ingresses);
            let id = BenchmarkId::new(shape.name(), ingresses);
            back_and_forth(&mut group, id, Translator::translate_ingress, &[other(&one), one]);
        }
        group.finish();
    }
}

fn back_and_forth<S>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    translate: fn(&mut Translator, &S) -> Translation,
    snapshots: &[S; 2],
) {
    back_and_forth_with(options(), group, id, translate, snapshots);
}

fn back_and_forth_with<S>(
    options: Options,
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    translate: fn(&mut Translator, &S) -> Translation,
    snapshots: &[S; 2],
) {
    let mut translator = Translator::new(options);
    translate(&mut translator, &snapshots[1]);
    let mut turn = 0;
    group.bench_function(id, |bencher| {
        bencher.iter(|| {
            turn += 1;
            translate(&mut translator, black_box(&snapshots[turn % 2]))
        });
    });
}

fn acceptance(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("validate");
    group.sample_size(10);
    for routes in [1_000, 10_000] {
        let translation = translate(&snapshot(Shape::FlatHosts, routes), &options());
        let Some(data_plane) = translation.data_planes.values().next() else { continue };
        let documents = data_plane.config.len();
        group.throughput(Throughput::Elements(documents as u64));
        group.bench_with_input(
            BenchmarkId::new("documents", documents),
            &data_plane.config,
            |bencher, config| {
                bencher.iter(|| black_box(validate(config, &ValidateOptions::default())));
            },
        );
    }
    group.finish();
}

criterion_group!(
    benches,
    full_translation,
    change,
    change_over_budget,
    change_of_policy,
    change_of_ingress_class,
    acceptance
);
criterion_main!(benches);
