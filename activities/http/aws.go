package http

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"reprise/activities/tool"
	"reprise/internal/base/awskeys"
	"reprise/internal/base/connection"
	"reprise/interpreter"
)

// awsKeys sign the requests of a connection.
type awsKeys struct {
	*connection.AWS

	clock    *remoteClock // of AWS, which compares it with the date of a signature
	provider *awskeys.Provider
	sent     aws.Credentials // those of the last signature, empty before the first
}

// awsRefusals are the codes with which AWS services refuse a signature that new keys, or a corrected clock, may mend.
var awsRefusals = []string{
	"ExpiredToken", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId", "InvalidToken",
	"SignatureDoesNotMatch", "InvalidSignatureException", "RequestTimeTooSkewed", "TokenRefreshRequired",
}

// refusedBy reports whether an answer refuses the signature. Services name the reason in a header or in the body, as JSON or XML.
func (k *awsKeys) refusedBy(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusForbidden {
		return false
	}
	said := response.Header.Get("X-Amzn-Errortype") + " " + string(peekedBytes(response))
	return slices.ContainsFunc(awsRefusals, func(name string) bool { return strings.Contains(said, name) })
}

// signRequest adds the signature to a request that will not change any more. It leaves a request alone that has an
// Authorization header of the author. name is that of the connection, for errors.
func (k *awsKeys) signRequest(request *http.Request, name string) error {
	if request.Header.Get(authorization) != "" {
		return nil
	}
	digest, err := digestOf(request)
	if err != nil {
		return tool.ConfigErrorf("connection %q: %w", name, err)
	}
	keys, err := k.provider.Keys(request.Context())
	if err != nil {
		return keysError(name, err)
	}
	k.sent = keys
	own := tool.SecretsOf(request.Context())
	for _, secret := range []string{keys.SecretAccessKey, keys.SessionToken} {
		own.AddSent(own.AddToken(secret))
	}
	// AWS services decode the path and encode it in their own way, which differs for + and some other
	// characters.
	request.URL.RawPath = awsPath(request.URL.EscapedPath())
	request.URL.RawQuery = strings.ReplaceAll(request.URL.RawQuery, "+", "%20")
	request.Header.Set("X-Amz-Content-Sha256", digest)
	signed := request.Clone(request.Context())
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = strings.HasPrefix(k.Service, "s3") })
	if err := signer.SignHTTP(request.Context(), keys, signed, digest, k.Service, k.Region, k.clock.remoteNow().UTC()); err != nil {
		return tool.ConfigErrorf("connection %q: the request cannot be signed: %w", name, err)
	}
	k.maskSignature(request.Context(), signed.Header.Get(authorization))
	request.Header, request.Host = signed.Header, signed.Host
	return nil
}

// keysError returns the error of an attempt for which there are no keys. ctx.Err() stays as it is.
func keysError(name string, err error) error {
	failed, ok := errors.AsType[*awskeys.Error](err)
	if !ok {
		return err
	}
	class := interpreter.ClassRetryable
	if failed.Refused {
		class = interpreter.ClassFinal
	}
	return &tool.Error{Kind: interpreter.KindConnection, Class: class, Type: tool.TypeSecretStore, Message: fmt.Sprintf("connection %q: %s", name, failed)}
}

// withOtherKeys returns the login if it has other keys than those that were refused: of a role, or of a file that
// another program renews. nil means that it has not.
func (l *credentials) withOtherKeys(ctx context.Context) (*credentials, error) {
	has, err := l.aws.provider.HasOthers(ctx, l.aws.sent)
	if err != nil {
		return nil, keysError(l.name, err)
	}
	if !has {
		return nil, nil
	}
	return l, nil
}

// maskSignature masks the signature in what the attempt reports: services repeat it when they refuse it.
func (*awsKeys) maskSignature(ctx context.Context, header string) {
	_, signature, _ := strings.Cut(header, "Signature=")
	own := tool.SecretsOf(ctx)
	for _, text := range []string{header, signature} {
		own.AddSent(own.AddToken(text))
	}
}

// digestOf returns the SHA-256 of a request's body, in hex.
func digestOf(request *http.Request) (string, error) {
	sum := sha256.New()
	if request.Body != nil && request.Body != http.NoBody {
		if request.GetBody == nil {
			return "", errors.New("the request cannot be signed: its body can be read only once")
		}
		body, err := request.GetBody()
		if err != nil {
			return "", err
		}
		defer body.Close()
		if _, err := io.Copy(sum, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// awsPath escapes everything but unreserved characters in an escaped path (RFC 3986, section 2.3), like AWS.
func awsPath(escaped string) string {
	segments := strings.Split(escaped, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			continue
		}
		// Of what QueryEscape leaves, a space alone is written in another way.
		segments[i] = strings.ReplaceAll(url.QueryEscape(plain), "+", "%20")
	}
	return strings.Join(segments, "/")
}
