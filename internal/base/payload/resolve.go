package payload

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/codec"
)

// ResolveReferences replaces references in a message by the stored values: the SDK does so for results, but not for the events
// of a history. It changes the message.
func (s *Store) ResolveReferences(ctx context.Context, message proto.Message) error {
	return proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(visit *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			resolved := make([]*commonpb.Payload, len(payloads))
			for i, payload := range payloads {
				var err error
				if resolved[i], err = s.ResolvePayload(visit, payload); err != nil {
					return nil, err
				}
			}
			return resolved, nil
		},
	})
}

// ResolvePayload returns the stored value to which a payload refers, or the payload if it is not a reference. The error is a
// *StoreError while the store is away.
func (s *Store) ResolvePayload(ctx context.Context, payload *commonpb.Payload) (*commonpb.Payload, error) {
	claim, err := claimOf(payload)
	if err != nil || claim == nil {
		return payload, err
	}
	return (&driver{store: s}).retrievePayload(ctx, claim)
}

// claimOf returns the claim in a reference to a stored value; nil if the payload is not a reference.
func claimOf(payload *commonpb.Payload) (map[string]string, error) {
	if !codec.IsReference(payload) {
		return nil, nil
	}
	var reference sdkpb.ExternalStorageReference
	if err := converter.NewProtoJSONPayloadConverter().FromPayload(payload, &reference); err != nil {
		return nil, fmt.Errorf("decode the reference to a stored value: %w", err)
	}
	if reference.GetDriverName() != driverName {
		return nil, fmt.Errorf("a value was stored with the driver %q, which this program lacks", reference.GetDriverName())
	}
	if reference.GetClaimData() == nil {
		return map[string]string{}, nil
	}
	return reference.GetClaimData(), nil
}
