// Command test-pod is what the tests of the node run in Pods: it tells what a container is given, and does what it is told.
//
//	GET /                  the name of the Pod (POD_NAME)
//	GET /env/NAME          a variable, 404 if there is none
//	GET /file/PATH         a file, 404 if there is none
//	GET /write/PATH        writes to a file, 403 if it must not
//	GET /get?url=URL       what another server answers
//	GET /kubernetes        what the API server answers to the service account
//	GET /ready             200, or 503 after /unready
//	GET /unready, /again   changes that
//	GET /exit/CODE         ends
//	a datagram             comes back
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	fmt.Println("started with", os.Args[1:])
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		fmt.Println("asked to end")
		if os.Getenv("STUBBORN") == "" {
			os.Exit(0)
		}
	}()
	go echo()
	var unready atomic.Bool
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(answer, os.Getenv("POD_NAME"))
	})
	http.HandleFunc("/env/{name}", func(answer http.ResponseWriter, request *http.Request) {
		value, there := os.LookupEnv(request.PathValue("name"))
		if !there {
			answer.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(answer, value)
	})
	http.HandleFunc("/file/{path...}", func(answer http.ResponseWriter, request *http.Request) {
		text, err := os.ReadFile("/" + request.PathValue("path"))
		if err != nil {
			answer.WriteHeader(http.StatusNotFound)
		}
		_, _ = answer.Write(text)
	})
	http.HandleFunc("/write/{path...}", func(answer http.ResponseWriter, request *http.Request) {
		if err := os.WriteFile("/"+request.PathValue("path"), []byte("written"), 0o600); err != nil {
			http.Error(answer, err.Error(), http.StatusForbidden)
		}
	})
	http.HandleFunc("/get", func(answer http.ResponseWriter, request *http.Request) {
		pass(answer, &http.Client{Timeout: 5 * time.Second}, request.URL.Query().Get("url"), "")
	})
	http.HandleFunc("/kubernetes", func(answer http.ResponseWriter, _ *http.Request) {
		token, err := os.ReadFile(account + "token")
		certificate, err2 := os.ReadFile(account + "ca.crt")
		if err != nil || err2 != nil {
			http.Error(answer, fmt.Sprint(err, err2), http.StatusInternalServerError)
			return
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(certificate)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		// By address, which every client library uses, and by name.
		pass(answer, client, "https://"+os.Getenv("KUBERNETES_SERVICE_HOST")+"/version", string(token))
		pass(answer, client, "https://kubernetes.default.svc/apis", string(token))
	})
	http.HandleFunc("/ready", func(answer http.ResponseWriter, _ *http.Request) {
		if unready.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/unready", func(http.ResponseWriter, *http.Request) { unready.Store(true) })
	http.HandleFunc("/again", func(http.ResponseWriter, *http.Request) { unready.Store(false) })
	http.HandleFunc("/exit/{code}", func(_ http.ResponseWriter, request *http.Request) {
		code, _ := strconv.Atoi(request.PathValue("code"))
		os.Exit(code)
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	fmt.Println(http.ListenAndServe(":"+port, nil))
	os.Exit(1)
}

// pass passes on what a server answers.
func pass(answer http.ResponseWriter, client *http.Client, url, token string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	got, err := client.Do(request)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadGateway)
		return
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		answer.WriteHeader(got.StatusCode)
	}
	_, _ = io.Copy(answer, got.Body)
}

// echo sends datagrams back to where they come from.
func echo() {
	socket, err := net.ListenPacket("udp", ":8080")
	if err != nil {
		fmt.Println("no echo:", err)
		return
	}
	buffer := make([]byte, 65535)
	for {
		size, from, err := socket.ReadFrom(buffer)
		if err != nil {
			continue
		}
		_, _ = socket.WriteTo(buffer[:size], from)
	}
}
