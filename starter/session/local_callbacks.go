package session

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
	"reprise/starter/cli"
)

// localCallbacks accepts answers for attempts of a local worker, from this machine.
type localCallbacks struct {
	URL  string // base, as the worker gives it to other systems
	stop func()
}

// startCallbacks starts to listen for answers. REPRISE_CALLBACK_URL overrides the base URL, for callers that reach
// the listener in another way. The port stays the same as long as a local server keeps its state, unless another
// program uses it.
func startCallbacks(s *Session, dbFile string, keys *seal.Keys, masked *secrets.Masker, logger *slog.Logger) (*localCallbacks, error) {
	base := os.Getenv(callback.Variable)
	if err := callback.CheckBase(base); err != nil {
		return nil, cli.UsageError("%s: %w", callback.Variable, err)
	}
	port, err := localText(dbFile, callbackPortSuffix, freePort)
	if err != nil {
		return nil, fmt.Errorf("the port for callbacks: %w", err)
	}
	listener, err := ListenNear(port)
	if err != nil {
		return nil, fmt.Errorf("listen for callbacks: %w", err)
	}
	most, err := s.MostBytes()
	if err != nil {
		return nil, err
	}
	server := serve.New(serve.Options{
		Client: s.Client, Keys: keys, MaxAnswer: most, Masked: masked, Logger: logger, Limits: serve.Limits{Stop: localStopTimeout},
	})
	stop := cli.RunInBackground(context.Background(), func(ctx context.Context) {
		if err := server.Run(ctx, listener, nil); err != nil {
			logger.Error("callbacks are no longer accepted", "error", err)
		}
	})
	return &localCallbacks{URL: cmp.Or(base, "http://"+listener.Addr().String()), stop: stop}, nil
}

// freePort returns a free port of this machine; "0" if none is found.
func freePort() string {
	listener, err := ListenLocally("0")
	if err != nil {
		return "0"
	}
	defer func() { _ = listener.Close() }()
	address, _ := listener.Addr().(*net.TCPAddr)
	return strconv.Itoa(address.Port)
}

// ListenNear listens on a port of this machine, or on a free one if the port is in use.
func ListenNear(port string) (net.Listener, error) {
	if listener, err := ListenLocally(port); err == nil {
		return listener, nil
	}
	return ListenLocally("0")
}

// ListenLocally listens on a port of the loopback interface.
func ListenLocally(port string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:"+port)
}
