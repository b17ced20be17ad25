package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
)

// loopback is the address at which the services of this process reach each other.
const loopback = "127.0.0.1"

// ports are the ports of a server, all of them chosen.
type ports struct {
	frontend, http, ui        int // http is 0 without an HTTP API
	metrics                   int // 0 without metrics
	history, matching, worker int
	internalFrontend          int // 0 without a key
	// httpInternal is the port of the HTTP API behind the guard. httpHost is the only Host header that the API
	// accepts.
	httpInternal int
	httpHost     string
}

// choosePorts chooses a free port for each one that was not given, and returns an error for a given one that is in
// use.
func choosePorts(ctx context.Context, opts options) (ports, error) {
	chosen := ports{frontend: opts.port, http: opts.httpPort, ui: opts.uiPort, metrics: opts.metricsPort, httpHost: rand.Text()}
	wanted := []struct {
		flag, ip string
		port     *int
		needed   bool
	}{
		{"--port", opts.ip, &chosen.frontend, true},
		{"--http-port", opts.ip, &chosen.http, opts.httpPort != 0},
		{"", opts.ip, &chosen.httpInternal, opts.httpPort != 0},
		{"--ui-port", opts.uiIP, &chosen.ui, opts.uiPlace() == uiOnPort},
		{"--metrics-port", opts.ip, &chosen.metrics, opts.metricsPort != 0},
		{"", loopback, &chosen.history, true},
		{"", loopback, &chosen.matching, true},
		{"", loopback, &chosen.worker, true},
		{"", loopback, &chosen.internalFrontend, opts.key != ""},
	}
	for _, w := range wanted {
		if !w.needed {
			continue
		}
		port, err := reservePort(ctx, w.ip, *w.port)
		if err != nil {
			if w.flag != "" {
				return ports{}, fmt.Errorf("cannot listen on %s, choose another port with %s: %w", address(w.ip, *w.port), w.flag, err)
			}
			return ports{}, fmt.Errorf("find a free port on %s: %w", w.ip, err)
		}
		*w.port = port
	}
	return chosen, nil
}

// reservePort checks that the server can listen on port, and returns it; for 0 it returns a free one. It connects to
// the free port once, which leaves it in TIME_WAIT: the system then assigns it to no other process until the server
// listens on it.
func reservePort(ctx context.Context, ip string, port int) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address(ip, port))
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	if port != 0 {
		return port, nil
	}
	bound := listener.Addr().(*net.TCPAddr) // that is what a TCP listener has
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(reachableIP(ip), bound.Port))
	if err != nil {
		return 0, err
	}
	accepted, err := listener.Accept()
	if err != nil {
		_ = conn.Close()
		return 0, err
	}
	// The side that closes first keeps the TIME_WAIT state, so the listening side closes first.
	_ = accepted.Close()
	_ = conn.Close()
	return bound.Port, nil
}

// reachableIP returns the address at which this machine reaches a listener on ip.
func reachableIP(ip string) string {
	switch ip {
	case "0.0.0.0":
		return loopback
	case "::":
		return "::1"
	default:
		return ip
	}
}

func address(ip string, port int) string {
	return net.JoinHostPort(ip, strconv.Itoa(port))
}
