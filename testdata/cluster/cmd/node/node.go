//go:build linux

package main

import (
	"context"
	"log"
	"path/filepath"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	nodeName = "node"
	// endTime is how long Pods may take to go when the node itself ends. They are killed, not asked.
	endTime = 5 * time.Second
)

// node runs all Pods of the cluster.
type node struct {
	client     kubernetes.Interface
	network    *network
	images     images
	folder     string
	spawner    *spawner
	logs       *logs
	secrets    listers.SecretLister
	configMaps listers.ConfigMapLister

	mutex sync.Mutex
	pods  map[podID]*pod
}

// run returns when the context has ended, and the Pods with it.
func (n *node) run(ctx context.Context, apiServer string) error {
	n.logs = &logs{folder: filepath.Join(n.folder, "logs")}
	if err := n.logs.serve(); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(n.client, 0)
	pods := factory.Core().V1().Pods().Informer()
	secrets, configMaps := factory.Core().V1().Secrets(), factory.Core().V1().ConfigMaps()
	n.secrets, n.configMaps = secrets.Lister(), configMaps.Lister()
	for _, sources := range []cache.SharedIndexInformer{secrets.Informer(), configMaps.Informer()} {
		if err := handle(sources, func(changed meta.Object) { n.sourceChanged(changed.GetNamespace()) }); err != nil {
			return err
		}
	}
	services := newServices(n.client, factory, apiServer)
	for _, sources := range []cache.SharedIndexInformer{
		factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		if err := handle(sources, func(meta.Object) { services.changed() }); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go services.run(ctx)
	if err := services.serveNames(ctx); err != nil {
		return err
	}
	// Only now, when volumes can be filled and the API server be reached.
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.podChanged(ctx, object.(*core.Pod)) },
		UpdateFunc: func(_, object any) { n.podChanged(ctx, object.(*core.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if pod, ok := object.(*core.Pod); ok {
				n.podDeleted(pod)
			}
		},
	})
	if err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	n.end()
	return nil
}

// handle calls a function with every object that appears, changes or goes.
func handle(informer cache.SharedIndexInformer, changed func(meta.Object)) error {
	call := func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if object, ok := object.(meta.Object); ok {
			changed(object)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    call,
		UpdateFunc: func(_, object any) { call(object) },
		DeleteFunc: call,
	})
	return err
}

// register makes the Node object: without it, Pods that are bound to it never get into an EndpointSlice. It is the last
// thing to be done, and says that the others are.
func (n *node) register(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	object := &core.Node{ObjectMeta: meta.ObjectMeta{Name: nodeName, Labels: map[string]string{core.LabelHostname: nodeName}}}
	_, err := nodes.Create(ctx, object, meta.CreateOptions{})
	if err != nil && !errs.IsAlreadyExists(err) {
		return err
	}
	object, err = nodes.Get(ctx, nodeName, meta.GetOptions{})
	if err != nil {
		return err
	}
	room := core.ResourceList{
		core.ResourceCPU:    resource.MustParse("1000"),
		core.ResourceMemory: resource.MustParse("1Ti"),
		core.ResourcePods:   resource.MustParse("1000"),
	}
	object.Status.Capacity, object.Status.Allocatable = room, room
	object.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: nodeAddress.String()}}
	object.Status.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
	object.Status.Conditions = []core.NodeCondition{
		{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "Ready", LastTransitionTime: meta.Now()},
	}
	_, err = nodes.UpdateStatus(ctx, object, meta.UpdateOptions{})
	return err
}

func (n *node) podChanged(ctx context.Context, object *core.Pod) {
	if object.Spec.NodeName == "" {
		if object.DeletionTimestamp == nil {
			go n.bind(ctx, object)
		}
		return
	}
	if object.Spec.NodeName != nodeName {
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	known := n.pods[object.UID]
	if known == nil {
		ended := object.Status.Phase == core.PodSucceeded || object.Status.Phase == core.PodFailed
		if ended && object.DeletionTimestamp == nil {
			return
		}
		known = newPod(n, object)
		n.pods[object.UID] = known
		go func() {
			known.run()
			n.mutex.Lock()
			defer n.mutex.Unlock()
			delete(n.pods, object.UID)
		}()
	}
	known.update(object)
}

func (n *node) podDeleted(object *core.Pod) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if known := n.pods[object.UID]; known != nil {
		known.kill()
	}
}

// bind does the work of a scheduler, for whom there is nothing to choose.
func (n *node) bind(ctx context.Context, object *core.Pod) {
	binding := &core.Binding{
		ObjectMeta: meta.ObjectMeta{Name: object.Name, Namespace: object.Namespace, UID: object.UID},
		Target:     core.ObjectReference{Kind: "Node", Name: nodeName},
	}
	for ctx.Err() == nil {
		err := n.client.CoreV1().Pods(object.Namespace).Bind(ctx, binding, meta.CreateOptions{})
		if err == nil || errs.IsNotFound(err) || errs.IsConflict(err) {
			return
		}
		log.Printf("%s/%s: binding: %v", object.Namespace, object.Name, err)
		time.Sleep(missingPause)
	}
}

// sourceChanged has the Pods of a namespace look at their volumes.
func (n *node) sourceChanged(namespace string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, pod := range n.pods {
		if pod.namespace == namespace {
			pod.sourcesChanged()
		}
	}
}

// end kills all Pods, without a word to the API server, which may be gone already.
func (n *node) end() {
	n.mutex.Lock()
	var waiting []*pod
	for _, pod := range n.pods {
		pod.kill()
		waiting = append(waiting, pod)
	}
	n.mutex.Unlock()
	limit := time.After(endTime)
	for _, pod := range waiting {
		select {
		case <-pod.gone:
		case <-limit:
			return
		}
	}
}
