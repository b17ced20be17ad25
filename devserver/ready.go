package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// frontendHealth is the frontend's service name for gRPC health checks.
const frontendHealth = "temporal.api.workflowservice.v1.WorkflowService"

const readyPoll = 20 * time.Millisecond

// waitReady waits until the frontend serves and the UI accepts connections, so that an announced address can be used
// immediately.
func (s *server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	target := address(reachableIP(s.opts.ip), s.ports.frontend)
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the server at %s: %w", target, err)
	}
	defer func() { _ = conn.Close() }()
	health := grpc_health_v1.NewHealthClient(conn)
	err = poll(ctx, func() error {
		answer, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: frontendHealth}, grpc.WaitForReady(true))
		if err == nil && answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			err = fmt.Errorf("it reports %s", answer.GetStatus())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the server at %s: %w", target, err)
	}
	if s.ui == nil {
		return nil
	}
	network, target := s.uiAddress(reachableIP(s.opts.uiIP))
	err = poll(ctx, func() error {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, target)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the web UI at %s: %w", target, err)
	}
	return nil
}

// poll calls check until it succeeds or ctx ends, and returns the last error.
func poll(ctx context.Context, check func() error) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
