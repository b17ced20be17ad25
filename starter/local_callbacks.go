package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"reprise/internal/base/callback"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/program/serve"
)

// localCallbacks takes answers to the attempts of a local worker, from this machine.
type localCallbacks struct {
	url  string // base, as the worker gives it to other systems
	stop func()
}

// startCallbacks starts it. REPRISE_CALLBACK_URL is the base where others reach it in
// another way. It has the same port as long as a local server keeps its state, if no
// other program uses it.
func startCallbacks(s *session, dbFile string, keys *seal.Keys, masked *secrets.Set, logger *slog.Logger) (*localCallbacks, error) {
	base := os.Getenv(callback.Variable)
	if err := callback.CheckBase(base); err != nil {
		return nil, usageError("%s: %w", callback.Variable, err)
	}
	port, err := localText(dbFile, ".callback-port", freePort)
	if err != nil {
		return nil, fmt.Errorf("the port for callbacks: %w", err)
	}
	listener, err := listenLocally(port)
	if err != nil { // somebody else has it
		listener, err = listenLocally("0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for callbacks: %w", err)
	}
	most, err := s.mostBytes()
	if err != nil {
		return nil, err
	}
	server := serve.New(serve.Options{
		Client: s.client, Keys: keys, MaxAnswer: most, Masked: masked, Logger: logger, Limits: serve.Limits{Stop: localStopTimeout},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Run(ctx, listener, nil); err != nil {
			logger.Error("callbacks are not taken any more", "error", err)
		}
	}()
	return &localCallbacks{url: cmp.Or(base, "http://"+listener.Addr().String()), stop: func() {
		cancel()
		<-ended
	}}, nil
}

// freePort is a port of this machine without a listener, "0" where none is found.
func freePort() string {
	listener, err := listenLocally("0")
	if err != nil {
		return "0"
	}
	defer func() { _ = listener.Close() }()
	address, _ := listener.Addr().(*net.TCPAddr)
	return strconv.Itoa(address.Port)
}

func listenLocally(port string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:"+port)
}
