// Package awskeys provides the keys that sign requests to AWS.
package awskeys

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"reprise/internal/base/connection"
)

// sessionName is the name of the session of an assumed role, which CloudTrail shows.
const sessionName = "reprise"

// renewBefore is how long before their end the keys of a role are replaced.
const renewBefore = time.Minute

// Provider provides the keys of one connection: those that it has, else those that AWS's own programs would use on
// this machine; with a role, the keys of a session in that role, which the former start. It is safe for concurrent use.
type Provider struct {
	of *connection.AWS

	mu    sync.Mutex
	cache *aws.CredentialsCache // nil before keys are needed
}

// New returns the provider of a connection's keys.
func New(of *connection.AWS) *Provider { return &Provider{of: of} }

// Error says why there are no keys now.
type Error struct {
	// Refused says that AWS does not allow it (status 403), so trying again does not help.
	Refused bool
	text    string
}

// Error has nothing of the keys.
func (e *Error) Error() string { return e.text }

// bareContext ends with its parent and has none of its values, by which a tool observes the requests of an attempt: those
// for keys are not the attempt's.
type bareContext struct{ context.Context }

// Value returns nil.
func (bareContext) Value(any) any { return nil }

// Keys returns the keys to sign with. The error is ctx's or an *Error.
func (p *Provider) Keys(ctx context.Context) (aws.Credentials, error) {
	ctx = bareContext{ctx}
	cache, err := p.open(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	keys, err := cache.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, p.errorOf(ctx, err)
	}
	return keys, nil
}

// HasOthers reports whether the provider has other keys than those that a service has refused.
func (p *Provider) HasOthers(ctx context.Context, refused aws.Credentials) (bool, error) {
	ctx = bareContext{ctx}
	cache, err := p.open(ctx)
	if err != nil {
		return false, err
	}
	held, err := cache.Retrieve(ctx)
	if err == nil && held.AccessKeyID != refused.AccessKeyID {
		return true, nil // another attempt has replaced them
	}
	cache.Invalidate()
	fresh, err := p.Keys(ctx)
	return err == nil && fresh.AccessKeyID != refused.AccessKeyID, err
}

// open returns the cache of the keys.
func (p *Provider) open(ctx context.Context) (*aws.CredentialsCache, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache != nil {
		return p.cache, nil
	}
	options := []func(*config.LoadOptions) error{config.WithRegion(p.of.Region)}
	if p.of.KeyID != "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(p.of.KeyID, p.of.Secret, p.of.Token)))
	}
	settings, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, &Error{text: "the configuration of AWS cannot be read: " + err.Error()}
	}
	provider := settings.Credentials
	if p.of.RoleARN != "" {
		provider = stscreds.NewAssumeRoleProvider(sts.NewFromConfig(settings), p.of.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = sessionName
			if p.of.ExternalID != "" {
				o.ExternalID = aws.String(p.of.ExternalID)
			}
		})
	}
	p.cache = aws.NewCredentialsCache(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
	return p.cache, nil
}

// awsCode matches codes of errors, which are shown.
var awsCode = regexp.MustCompile(`^[A-Za-z.]{1,100}$`)

// errorOf describes why there are no keys. What AWS says beyond its code is left out: it may repeat what was sent.
func (p *Provider) errorOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	what := "there are no credentials of AWS on this machine"
	if p.of.RoleARN != "" {
		what = "its role cannot be assumed"
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	if !isAPI || !awsCode.MatchString(api.ErrorCode()) {
		return &Error{text: what + ": AWS does not respond, or not as it should"}
	}
	response, has := errors.AsType[*smithyhttp.ResponseError](err)
	refused := has && response.HTTPStatusCode() == http.StatusForbidden
	return &Error{Refused: refused, text: fmt.Sprintf("%s: AWS refuses it with %s", what, api.ErrorCode())}
}
