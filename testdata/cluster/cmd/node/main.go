//go:build linux

// Command node runs the Pods of a test cluster as processes: it is the one node that the cluster has.
//
//	node --kubeconfig FILE --folder FOLDER [--image NAME=FILE]...
//
// It wants to be alone in a network namespace, together with the API server and whoever talks to Pods and Services. There
// it makes a bridge; each Pod gets a network namespace with an address of its own on it, and each container a root
// folder of its own with the volumes of the Pod. Beside the Pods it serves addresses of Services, those of load
// balancers too, names of Services, and the logs of containers, as far as the API server asks for them.
//
// Everything that it has started ends with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	// The same program is also the first thing that runs in a container.
	if len(os.Args) == 2 && os.Args[1] == enterContainer {
		fmt.Fprintln(os.Stderr, "the container cannot be started:", enter())
		os.Exit(startFailed)
	}
	log.SetFlags(log.Lmicroseconds)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatalln("node:", err)
	}
}

func run(ctx context.Context) error {
	images := images{}
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server, as an administrator")
	folder := flag.String("folder", "", "where Pods have their volumes; logs of containers are in its subfolder logs")
	flag.Var(images, "image", "`NAME=FILE`: the program, or the OCI archive (.tar), of all images whose name contains this; may be given several times")
	flag.Parse()
	if err := images.addTestPod(); err != nil {
		return err
	}
	if *kubeconfig == "" || *folder == "" || flag.NArg() > 0 {
		return errors.New("--kubeconfig and --folder are needed, and nothing but options")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	apiServer, err := url.Parse(config.Host)
	if err != nil {
		return fmt.Errorf("the address of the API server: %w", err)
	}
	path, err := filepath.Abs(*folder)
	if err != nil {
		return err
	}
	if err := images.unpack(filepath.Join(path, "images")); err != nil {
		return err
	}
	network, err := newNetwork()
	if err != nil {
		return fmt.Errorf("the network of Pods, which takes a network namespace that may be changed: %w", err)
	}
	node := &node{client: client, network: network, images: images, folder: path, spawner: newSpawner(), pods: map[podID]*pod{}}
	return node.run(ctx, apiServer.Host)
}
