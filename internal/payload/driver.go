package payload

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
)

const (
	// driverName is part of every reference in every history, so it never
	// changes.
	driverName = "reprise"
	driverType = "reprise/payload"
)

// Threshold is the size in bytes from which values go to the store. Histories
// depend on it through what runs record at their start.
const Threshold = 128 << 10

// External is the setting for clients and replayers. Without a store, values
// stay in Temporal, and one that another program has stored is an error that
// says where.
func (s *Store) External() converter.ExternalStorage {
	external := converter.ExternalStorage{
		Drivers: []converter.StorageDriver{&driver{store: s}}, PayloadSizeThreshold: Threshold,
	}
	if s == nil {
		external.DriverSelector = inline{}
	}
	return external
}

// ReadOnly is External for a client that reads stored values and stores none.
func (s *Store) ReadOnly() converter.ExternalStorage {
	external := s.External()
	external.DriverSelector = inline{}
	return external
}

// Use has a client of the given options keep its large values in the store.
func (s *Store) Use(options client.Options) client.Options {
	options.ExternalStorage = s.External()
	return options
}

// inline leaves every value where it is.
type inline struct{}

func (inline) SelectDriver(converter.StorageDriverSelectContext, *commonpb.Payload) (converter.StorageDriver, error) {
	return nil, nil
}

// driver is how the SDK uses a store.
type driver struct{ store *Store }

// Name is the driver's name in histories.
func (*driver) Name() string { return driverName }

// Type names the implementation.
func (*driver) Type() string { return driverType }

// Store keeps payloads and gives a claim for each, in order.
func (d *driver) Store(
	ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload,
) ([]converter.StorageDriverClaim, error) {
	if d.store == nil {
		return nil, errors.New("no payload store is configured")
	}
	claims := make([]converter.StorageDriverClaim, len(payloads))
	limiter := ctx.GetLimiter()
	group, limited := errgroup.WithContext(orBackground(ctx.Context))
	for i, payload := range payloads {
		group.Go(func() error {
			return limiter.Permit(limited, payload, func() error {
				// Maps of metadata in one order: equal values have equal hashes.
				data, err := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
				if err != nil {
					return fmt.Errorf("encode a value for the payload store: %w", err)
				}
				ref, err := d.store.put(limited, data)
				claims[i].ClaimData = ref.claim(d.store.name)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return claims, nil
}

// Retrieve gives the payload of each claim, in order.
func (d *driver) Retrieve(
	ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim,
) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	limiter := ctx.GetLimiter()
	group, limited := errgroup.WithContext(orBackground(ctx.Context))
	for i, claim := range claims {
		group.Go(func() error {
			return limiter.Permit(limited, claim, func() error {
				payload, err := d.retrieve(limited, claim.ClaimData)
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

func (d *driver) retrieve(ctx context.Context, claim map[string]string) (*commonpb.Payload, error) {
	if d.store == nil {
		return nil, fmt.Errorf("a value of this run is in the payload store %s, and this program has none: "+
			"give it the same one with --payload-store or %s", claim["store"], Variable)
	}
	ref, err := parseClaim(claim)
	if err != nil {
		return nil, err
	}
	data, err := d.store.get(ctx, ref)
	if err != nil {
		if written := claim["store"]; written != d.store.name {
			return nil, fmt.Errorf("%w; it was written to %s", err, written)
		}
		return nil, err
	}
	payload := &commonpb.Payload{}
	if err := proto.Unmarshal(data, payload); err != nil {
		return nil, fmt.Errorf("decode %s of the payload store %s: %w", ref.key, d.store.name, err)
	}
	return payload, nil
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
