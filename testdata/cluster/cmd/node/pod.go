//go:build linux

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type podID = types.UID

// lookAgain is how often volumes are looked at although no source has changed: tokens grow old.
const lookAgain = 30 * time.Second

// pod runs one Pod from its binding to its end.
type pod struct {
	node            *node
	namespace, name string
	uid             podID
	folder          string
	network         *podNetwork
	volumes         *volumes
	// initial are the init containers, those among them that stay beside the others, and containers the others.
	initial, containers []*container
	status              status

	mutex  sync.Mutex
	latest *core.Pod
	ending bool

	// end is closed when the Pod shall end in its own time; kill ends it at once.
	end      chan struct{}
	ctx      context.Context
	kill     context.CancelFunc
	gone     chan struct{}
	report   chan struct{}
	sources  chan struct{}
	launched []*container
}

func newPod(node *node, object *core.Pod) *pod {
	ctx, kill := context.WithCancel(context.Background())
	p := &pod{
		node:      node,
		namespace: object.Namespace,
		name:      object.Name,
		uid:       object.UID,
		folder:    filepath.Join(node.folder, "pods", string(object.UID)),
		latest:    object,
		end:       make(chan struct{}),
		ctx:       ctx,
		kill:      kill,
		gone:      make(chan struct{}),
		report:    make(chan struct{}, 1),
		sources:   make(chan struct{}, 1),
	}
	p.volumes = &volumes{
		node:    node,
		pod:     object,
		folder:  filepath.Join(p.folder, "volumes"),
		written: map[string]content{},
		tokens:  map[string]token{},
	}
	for index := range object.Spec.InitContainers {
		spec := &object.Spec.InitContainers[index]
		again := func(code int32) bool { return code != 0 && object.Spec.RestartPolicy != core.RestartPolicyNever }
		if isSidecar(spec) {
			again = func(int32) bool { return true }
		}
		p.initial = append(p.initial, newContainer(p, spec, again))
	}
	for index := range object.Spec.Containers {
		again := func(code int32) bool {
			policy := object.Spec.RestartPolicy
			return policy == core.RestartPolicyAlways || policy == core.RestartPolicyOnFailure && code != 0
		}
		p.containers = append(p.containers, newContainer(p, &object.Spec.Containers[index], again))
	}
	return p
}

func isSidecar(spec *core.Container) bool {
	return spec.RestartPolicy != nil && *spec.RestartPolicy == core.ContainerRestartPolicyAlways
}

// run returns when nothing of the Pod is left.
func (p *pod) run() {
	defer close(p.gone)
	defer func() {
		p.kill()
		p.stop(p.launched, 0)
		if p.network != nil {
			p.network.detach()
		}
		if err := os.RemoveAll(p.folder); err != nil {
			p.say("what it leaves behind: %v", err)
		}
	}()
	go p.reports()
	if p.prepare() && p.initialize() {
		for _, container := range p.containers {
			p.launch(container)
		}
		p.changed()
		p.follow()
	}
	if p.ctx.Err() != nil {
		return
	}
	deadline := time.Now().Add(p.grace())
	p.stop(p.containers, time.Until(deadline))
	for index := len(p.initial) - 1; index >= 0; index-- {
		// Those beside the others leave one after the other, the first one last.
		p.stop(p.initial[index:index+1], max(time.Until(deadline), time.Second))
	}
	p.delete()
}

// prepare makes what containers need, as often as it takes.
func (p *pod) prepare() bool {
	p.changed()
	told := ""
	for {
		err := p.tryPrepare()
		if err == nil {
			return true
		}
		if told != err.Error() {
			told = err.Error()
			p.say("waits: %s", told)
			for _, container := range append(p.initial, p.containers...) {
				container.set(func() { container.state = waiting("ContainerCreating", told) })
			}
		}
		select {
		case <-p.end:
			return false
		case <-p.ctx.Done():
			return false
		case <-p.sources:
		case <-time.After(missingPause):
		}
	}
}

func (p *pod) tryPrepare() error {
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return err
	}
	if p.network == nil {
		network, err := p.node.network.attach(p.node.spawner, p.object().Status.PodIP)
		if err != nil {
			return err
		}
		p.network = network
	}
	return p.volumes.refresh(p.ctx)
}

// initialize runs the init containers one after the other. One that stays only has to start.
func (p *pod) initialize() bool {
	for _, container := range p.initial {
		p.launch(container)
		for {
			state := container.status()
			if isSidecar(container.spec) && *state.Started {
				break
			}
			if state.State.Terminated != nil && state.State.Terminated.ExitCode == 0 {
				break
			}
			select {
			case <-p.end:
				return false
			case <-p.ctx.Done():
				return false
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return true
}

func (p *pod) launch(container *container) {
	p.launched = append(p.launched, container)
	go container.run(p.ctx)
}

// follow keeps the volumes up to date until the Pod shall end. When its containers are done, so are those beside them.
func (p *pod) follow() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, container := range p.containers {
			<-container.done
		}
	}()
	for {
		select {
		case <-p.end:
			return
		case <-p.ctx.Done():
			return
		case <-done:
			p.stop(p.initial, p.grace())
			done = nil
			p.changed()
		case <-p.sources:
		case <-time.After(lookAgain):
		}
		if err := p.volumes.refresh(p.ctx); err != nil && p.ctx.Err() == nil {
			p.say("volumes stay as they are: %v", err)
		}
	}
}

// stop has containers end side by side, and waits for that.
func (p *pod) stop(containers []*container, grace time.Duration) {
	var group sync.WaitGroup
	for _, container := range containers {
		for _, launched := range p.launched {
			if launched == container {
				group.Go(func() { container.stop(grace) })
			}
		}
	}
	group.Wait()
}

// grace is the time that the Pod has for its end.
func (p *pod) grace() time.Duration {
	pod := p.object()
	seconds := pod.DeletionGracePeriodSeconds
	if seconds == nil {
		seconds = pod.Spec.TerminationGracePeriodSeconds
	}
	if seconds == nil {
		return 30 * time.Second
	}
	return time.Duration(*seconds) * time.Second
}

// delete removes the object, which stays until a node says that the Pod is gone.
func (p *pod) delete() {
	now := int64(0)
	options := meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: meta.NewUIDPreconditions(string(p.uid))}
	for p.ctx.Err() == nil {
		err := p.node.client.CoreV1().Pods(p.namespace).Delete(p.ctx, p.name, options)
		if err == nil || errs.IsNotFound(err) || errs.IsConflict(err) {
			return
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(missingPause):
		}
	}
}

// update takes the object as it is now. It is to end when somebody has deleted it.
func (p *pod) update(object *core.Pod) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.latest = object
	if object.DeletionTimestamp != nil && !p.ending {
		p.ending = true
		close(p.end)
	}
}

func (p *pod) object() *core.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.latest
}

// sourcesChanged has the volumes looked at.
func (p *pod) sourcesChanged() { wake(p.sources) }

// changed has the status reported.
func (p *pod) changed() { wake(p.report) }

func wake(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// volume is where a volume of the Pod lies, and whether its content comes from elsewhere.
func (p *pod) volume(name string) (string, bool, error) {
	for _, volume := range p.object().Spec.Volumes {
		if volume.Name == name {
			return p.volumes.path(name), volume.EmptyDir == nil, nil
		}
	}
	return "", false, fmt.Errorf("the Pod has no volume %q", name)
}

// files are those that every container of the Pod has.
func (p *pod) files() map[string]string {
	pod := p.object()
	hosts := "127.0.0.1\tlocalhost\n" + p.network.address.String() + "\t" + p.name + "\n"
	for _, alias := range pod.Spec.HostAliases {
		hosts += alias.IP + "\t" + strings.Join(alias.Hostnames, " ") + "\n"
	}
	return map[string]string{
		"/etc/hostname": p.name + "\n",
		"/etc/hosts":    hosts,
		"/etc/resolv.conf": fmt.Sprintf("nameserver %s\nsearch %s.svc.%s svc.%[3]s %[3]s\noptions ndots:5\n",
			nameServer, p.namespace, clusterDomain),
	}
}

func (p *pod) say(format string, arguments ...any) {
	log.Printf("%s/%s: %s", p.namespace, p.name, fmt.Sprintf(format, arguments...))
}
