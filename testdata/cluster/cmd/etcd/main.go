// Command etcd is the store of the test cluster, in the version that Kubernetes is built with.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
