// Package client replaces the client of Temporal's worker controllers, which start workers for the server. This
// server has none.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

// Client is what the server's worker deployments call.
type Client interface {
	DescribeWorkerControllerInstance(
		context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
	) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error)
	UpdateWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion,
		conflictToken []byte, identity string, upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) (*iface.UpdateWorkerControllerInstanceResponse, error)
	ValidateWorkerControllerInstanceSpec(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion,
		identity string, upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) error
	DeleteWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, identity string,
	) error
}

// Module gives the server its client.
var Module = fx.Provide(func() Client { return none{} })

type none struct{}

var errNone = serviceerror.NewInvalidArgument("this server does not start workers by itself: start them yourself, " +
	"or use Temporal's own server")

func (none) DescribeWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error) {
	return nil, nil, serviceerror.NewNotFound("no worker controller: this server does not start workers by itself")
}

func (none) UpdateWorkerControllerInstance(
	_ context.Context, _ *namespace.Namespace, _ *deploymentpb.WorkerDeploymentVersion,
	_ []byte, _ string, _ map[string]iface.ScalingGroupSpecUpdate, _ []string,
) (*iface.UpdateWorkerControllerInstanceResponse, error) {
	return nil, errNone
}

func (none) ValidateWorkerControllerInstanceSpec(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
	string, map[string]iface.ScalingGroupSpecUpdate, []string,
) error {
	return errNone
}

// DeleteWorkerControllerInstance succeeds, because there is nothing to delete.
func (none) DeleteWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
) error {
	return nil
}
