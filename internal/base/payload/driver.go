package payload

import (
	"context"
	"errors"
	"fmt"
	"maps"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"reprise/interpreter"
)

const (
	// driverName is part of every reference in every history, so it never changes.
	driverName = "reprise"
	driverType = "reprise/payload"
)

// Threshold is the size in bytes from which values are stored. Histories depend on it through what runs record at
// their start.
const Threshold = 128 << 10

// ExternalStorage returns the setting for clients and replayers. Without a store, values stay in Temporal, and reading a
// value that another program has stored fails with an error that names its store.
func (s *Store) ExternalStorage() converter.ExternalStorage {
	d := &driver{store: s}
	external := converter.ExternalStorage{
		Drivers: []converter.StorageDriver{d}, PayloadSizeThreshold: interpreter.ScriptsAbove, DriverSelector: selector{d},
	}
	if s == nil {
		external.DriverSelector = inline{}
	}
	return external
}

// ReadOnly is ExternalStorage for a client that reads stored values but stores none.
func (s *Store) ReadOnly() converter.ExternalStorage {
	external := s.ExternalStorage()
	external.DriverSelector = inline{}
	return external
}

// ClientOptions returns options for a client that puts its large values into the store.
func (s *Store) ClientOptions(options client.Options) client.Options {
	options.ExternalStorage = s.ExternalStorage()
	return options
}

// inline leaves every value in Temporal.
type inline struct{}

func (inline) SelectDriver(converter.StorageDriverSelectContext, *commonpb.Payload) (converter.StorageDriver, error) {
	return nil, nil
}

// isScript reports whether a value is the script of a playbook with many children, which is stored once for all of
// them.
func isScript(payload *commonpb.Payload) bool {
	return payload.GetMetadata()[interpreter.ScriptMark] != nil
}

// selector selects values of at least Threshold, and scripts of any size. It does not select values that must be in
// Temporal: those marked by MarkInline, and heartbeats, because an unavailable store would end their activity.
type selector struct{ driver converter.StorageDriver }

func (s selector) SelectDriver(
	ctx converter.StorageDriverSelectContext, payload *commonpb.Payload,
) (converter.StorageDriver, error) {
	// The SDK sets Target for everything it stores except heartbeats.
	if ctx.Target == nil || payload.GetMetadata()[inlineMark] != nil || !isScript(payload) && proto.Size(payload) < Threshold {
		return nil, nil
	}
	return s.driver, nil
}

// inlineMark is the metadata key of values that stay in Temporal.
const inlineMark = "reprise-inline"

// MarkInline returns the payload marked to stay in Temporal, which accepts up to 2 MB.
func (*Store) MarkInline(payload *commonpb.Payload) *commonpb.Payload {
	marked := &commonpb.Payload{Metadata: maps.Clone(payload.GetMetadata()), Data: payload.GetData()}
	if marked.Metadata == nil {
		marked.Metadata = map[string][]byte{}
	}
	marked.Metadata[inlineMark] = []byte("1")
	return marked
}

// driver adapts a store to the SDK.
type driver struct{ store *Store }

// Name returns the driver's name in histories.
func (*driver) Name() string { return driverName }

// Type returns the name of the implementation.
func (*driver) Type() string { return driverType }

// Store stores payloads and returns a claim for each, in order.
func (d *driver) Store(
	ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload,
) ([]converter.StorageDriverClaim, error) {
	if d.store == nil {
		return nil, errors.New("no payload store is configured")
	}
	claims := make([]converter.StorageDriverClaim, len(payloads))
	limiter := ctx.GetLimiter()
	group, limited := errgroup.WithContext(contextOrBackground(ctx.Context))
	for i, payload := range payloads {
		group.Go(func() error {
			return limiter.Permit(limited, payload, func() error {
				data, err := d.store.encodePayload(payload)
				if err != nil {
					return err
				}
				return d.store.tryPatiently(limited, func(trying context.Context) error {
					ref, err := d.store.putValue(trying, data)
					claims[i].ClaimData = ref.toClaim(d.store.Name())
					if err == nil && isScript(payload) {
						d.store.recent.addKey(ref.key) // the next child has the same
					}
					return err
				})
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return claims, nil
}

// encodePayload encodes equal values as equal bytes, so that their hashes are equal: metadata is in a fixed order. With a
// key, the bytes are encrypted.
func (s *Store) encodePayload(payload *commonpb.Payload) ([]byte, error) {
	payload, err := s.encryption.EncodePayload(payload)
	if err != nil {
		return nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode a value for the payload store: %w", err)
	}
	return data, nil
}

// Retrieve returns the payload of each claim, in order.
func (d *driver) Retrieve(
	ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim,
) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	limiter := ctx.GetLimiter()
	group, limited := errgroup.WithContext(contextOrBackground(ctx.Context))
	for i, claim := range claims {
		group.Go(func() error {
			return limiter.Permit(limited, claim, func() error {
				payload, err := d.retrievePayload(limited, claim.ClaimData)
				payloads[i] = payload
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return payloads, nil
}

func (d *driver) retrievePayload(ctx context.Context, claim map[string]string) (*commonpb.Payload, error) {
	if d.store == nil {
		return nil, fmt.Errorf("a value of this run is in the payload store %s, but this program has none: "+
			"set the same one with --payload-store or %s", claim["store"], Variable)
	}
	ref, err := parseClaim(claim)
	if err != nil {
		return nil, err
	}
	var data []byte
	err = d.store.tryPatiently(ctx, func(trying context.Context) (err error) {
		data, err = d.store.getScript(trying, ref)
		return err
	})
	if err != nil {
		if written := claim["store"]; written != d.store.Name() {
			return nil, fmt.Errorf("%w; it was written to %s", err, written)
		}
		return nil, err
	}
	payload := &commonpb.Payload{}
	if err := proto.Unmarshal(data, payload); err != nil {
		return nil, fmt.Errorf("decode %s of the payload store %s: %w", ref.key, d.store.Name(), err)
	}
	decoded, err := d.store.encryption.DecodePayload(payload)
	if err != nil {
		return nil, fmt.Errorf("decode %s of the payload store %s: %w", ref.key, d.store.Name(), err)
	}
	return decoded, nil
}

func contextOrBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
