//go:build linux

package main

import (
	"encoding/json"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// status is what was last said of a Pod.
type status struct {
	start      meta.Time
	conditions []core.PodCondition
	said       *core.PodStatus
}

// reports says how the Pod is whenever that has changed, until the Pod is gone.
func (p *pod) reports() {
	p.status.start = meta.Now()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.report:
		}
		status := p.now()
		if p.status.said != nil && equality.Semantic.DeepEqual(p.status.said, status) {
			continue
		}
		err := p.patch(status)
		if err == nil {
			p.status.said = status
			continue
		}
		if errs.IsNotFound(err) || errs.IsConflict(err) || p.ctx.Err() != nil {
			continue
		}
		p.say("status: %v", err)
		time.AfterFunc(missingPause, p.changed)
	}
}

func (p *pod) patch(status *core.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": status})
	if err != nil {
		return err
	}
	_, err = p.node.client.CoreV1().Pods(p.namespace).
		Patch(p.ctx, p.name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
	return err
}

// now is the status as it is at this moment.
func (p *pod) now() *core.PodStatus {
	status := &core.PodStatus{HostIP: nodeAddress.String(), StartTime: &p.status.start}
	status.HostIPs = []core.HostIP{{IP: status.HostIP}}
	for _, container := range p.initial {
		status.InitContainerStatuses = append(status.InitContainerStatuses, initStatus(container))
	}
	for _, container := range p.containers {
		status.ContainerStatuses = append(status.ContainerStatuses, container.status())
	}
	initialized, ready := true, true
	for index, container := range p.initial {
		one := &status.InitContainerStatuses[index]
		if isSidecar(container.spec) {
			initialized = initialized && *one.Started
			ready = ready && one.Ready
		} else {
			initialized = initialized && one.Ready
		}
	}
	started := false
	for _, one := range status.ContainerStatuses {
		ready = ready && one.Ready
		started = started || one.State.Running != nil || one.State.Terminated != nil || one.RestartCount > 0
		if one.State.Running != nil || one.RestartCount > 0 {
			// Whoever has a process has an address; it never becomes another one.
			status.PodIP = p.network.address.String()
			status.PodIPs = []core.PodIP{{IP: status.PodIP}}
		}
	}
	status.Phase = p.phase(started)
	ready = ready && status.Phase == core.PodRunning
	p.condition(core.PodScheduled, true)
	p.condition(core.PodInitialized, initialized)
	p.condition(core.ContainersReady, ready)
	p.condition(core.PodReady, ready)
	status.Conditions = append(status.Conditions, p.status.conditions...)
	return status
}

// phase is final when no container will run again.
func (p *pod) phase(started bool) core.PodPhase {
	if !started {
		return core.PodPending
	}
	phase := core.PodSucceeded
	for _, container := range p.containers {
		select {
		case <-container.done:
			if state := container.status().State.Terminated; state == nil || state.ExitCode != 0 {
				phase = core.PodFailed
			}
		default:
			return core.PodRunning
		}
	}
	if p.object().DeletionTimestamp != nil {
		// They were made to end, which is neither.
		return core.PodRunning
	}
	return phase
}

// condition keeps the time at which it last became another one.
func (p *pod) condition(kind core.PodConditionType, holds bool) {
	value := core.ConditionFalse
	if holds {
		value = core.ConditionTrue
	}
	for index := range p.status.conditions {
		if one := &p.status.conditions[index]; one.Type == kind {
			if one.Status != value {
				one.Status, one.LastTransitionTime = value, meta.Now()
			}
			return
		}
	}
	p.status.conditions = append(p.status.conditions,
		core.PodCondition{Type: kind, Status: value, LastTransitionTime: meta.Now()})
}

// initStatus of one that has done its work is ready.
func initStatus(container *container) core.ContainerStatus {
	status := container.status()
	if ended := status.State.Terminated; ended != nil && !isSidecar(container.spec) {
		status.Ready = ended.ExitCode == 0
	}
	return status
}
