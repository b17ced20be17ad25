package codec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// ClientOptions returns options for a client with Intercept. They must be complete otherwise. A nil codec has no key.
func (c *Codec) ClientOptions(options client.Options, logger *slog.Logger) (client.Options, error) {
	if c == nil {
		c = &Codec{}
	}
	intercept, err := c.Intercept(logger)
	options.ConnectionOptions.DialOptions = append(slices.Clip(options.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(intercept))
	return options, err
}

// Intercept returns an interceptor that encrypts requests and decrypts responses. It must be the last of a client, next to the
// network, and is needed without keys too, so that encrypted values are recognized. Search attributes, which the server must read,
// stay plain. Tasks that cannot be decrypted are held: see holdTask.
func (c *Codec) Intercept(logger *slog.Logger) (grpc.UnaryClientInterceptor, error) {
	payloads, err := proxy.NewPayloadVisitorInterceptor(proxy.PayloadVisitorInterceptorOptions{Inbound: c.visitEncoded()})
	if err != nil {
		return nil, fmt.Errorf("make the decoder of payloads: %w", err)
	}
	failures, err := proxy.NewFailureVisitorInterceptor(proxy.FailureVisitorInterceptorOptions{
		Inbound: &proxy.VisitFailuresOptions{Visitor: decodeFailure},
	})
	if err != nil {
		return nil, fmt.Errorf("make the decoder of failures: %w", err)
	}
	return func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if isCount(reply) { // whose groups are search attributes
			return invoke(ctx, method, request, reply, cc, options...)
		}
		encoded, err := c.encodeRequest(ctx, request)
		if err != nil {
			return err
		}
		if _, stops := request.(*workflowservice.ShutdownWorkerRequest); stops {
			c.releaseTasks()
		}
		var reason *KeyError // which the outer interceptor turns into a status
		decodeReply := func(
			ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, options ...grpc.CallOption,
		) error {
			err := payloads(ctx, method, request, reply, cc, invoke, options...)
			errors.As(err, &reason)
			return err
		}
		err = failures(ctx, method, encoded, reply, cc, decodeReply, options...)
		if reason != nil {
			return c.holdTask(context.WithoutCancel(ctx), taskSender{invoke: invoke, cc: cc, logger: logger}, request, reply, reason)
		}
		return err
	}, nil
}

// isCount reports whether a response only has numbers, of groups whose names are search attributes.
func isCount(reply any) bool {
	switch reply.(type) {
	case *workflowservice.CountWorkflowExecutionsResponse, *workflowservice.CountSchedulesResponse, *workflowservice.CountActivityExecutionsResponse,
		*workflowservice.CountNexusOperationExecutionsResponse:
		return true
	}
	return false
}

// encodeRequest returns a request whose payloads and failures are encrypted. The original stays as it is: it may be sent again,
// and the SDK keeps parts of it.
func (c *Codec) encodeRequest(ctx context.Context, request any) (any, error) {
	message, isMessage := request.(proto.Message)
	if !isMessage || len(c.keys()) == 0 {
		return request, nil
	}
	message = proto.Clone(message)
	if err := proxy.VisitFailures(ctx, message, proxy.VisitFailuresOptions{Visitor: encodeFailure}); err != nil {
		return nil, fmt.Errorf("encode a failure to encrypt it: %w", err)
	}
	err := proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{Visitor: eachPayload(c.EncodePayload), SkipSearchAttributes: true})
	return message, err
}

// DecodeMessage decrypts the payloads and failures of a message, such as a history that was read from a file. It changes
// the message. The error is a *KeyError.
func (c *Codec) DecodeMessage(ctx context.Context, message proto.Message) error {
	if err := proxy.VisitPayloads(ctx, message, *c.visitEncoded()); err != nil {
		return err
	}
	return proxy.VisitFailures(ctx, message, proxy.VisitFailuresOptions{Visitor: decodeFailure})
}

func (c *Codec) visitEncoded() *proxy.VisitPayloadsOptions {
	return &proxy.VisitPayloadsOptions{Visitor: eachPayload(c.DecodePayload), SkipSearchAttributes: true}
}

func eachPayload(
	change func(*commonpb.Payload) (*commonpb.Payload, error),
) func(*proxy.VisitPayloadsContext, []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		changed := make([]*commonpb.Payload, len(payloads))
		for i, payload := range payloads {
			var err error
			if changed[i], err = change(payload); err != nil {
				return nil, err
			}
		}
		return changed, nil
	}
}

// encodeFailure moves message and stack trace of a failure to a payload, which is encrypted like the others.
func encodeFailure(_ *proxy.VisitFailuresContext, failure *failurepb.Failure) error {
	if failure.GetEncodedAttributes() != nil {
		return nil
	}
	return converter.EncodeCommonFailureAttributes(converter.GetDefaultDataConverter(), failure)
}

// decodeFailure moves them back. Nothing of the encoded form stays: a failure that is sent on is encoded again.
func decodeFailure(_ *proxy.VisitFailuresContext, failure *failurepb.Failure) error {
	if failure.GetEncodedAttributes() == nil {
		return nil
	}
	converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), failure)
	failure.EncodedAttributes = nil
	return nil
}
