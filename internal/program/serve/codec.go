package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/internal/base/audit"
	"reprise/internal/base/codec"
	"reprise/internal/base/payload"
)

const (
	// MaxCodecBody is the largest body of a request to decode or encode payloads, in bytes. It is in memory as a whole; a
	// response of Temporal's with payloads has up to 4 MiB, a third more as base64.
	MaxCodecBody = 8 << 20
	// mostDecoded bounds the payloads of one response, in bytes: references of a few bytes lead to values of the payload store
	// that are in memory together.
	mostDecoded = 32 << 20
	// codecRequests is how many requests decode or encode concurrently, of all callers: each holds up to mostDecoded several
	// times.
	codecRequests = 4
)

// payloadChange is what a request does with payloads.
type payloadChange struct {
	action audit.ActionName
	query  []string
	change func(ctx context.Context, r *http.Request, payloads []*commonpb.Payload) ([]*commonpb.Payload, error)
}

// payloadRoutes returns the routes of a codec server, as Temporal's UI and CLI call it: below the namespace and without. They
// are not part of the API that openapi.json describes.
func (s *Server) payloadRoutes() []route {
	if !s.Decodes {
		return nil
	}
	var all []route
	for name, change := range map[string]payloadChange{
		"decode":   {action: audit.Decode, query: []string{preserveReferences}, change: s.decodePayloads},
		"download": {action: audit.Download, change: s.downloadPayloads},
		"encode":   {action: audit.Encode, change: s.encodePayloads},
	} {
		for _, path := range []string{"/" + name, "/{namespace}/" + name} {
			all = append(all,
				route{method: http.MethodPost, path: path, query: change.query, handle: s.postPayloads(change)},
				route{method: http.MethodOptions, path: path, page: true, handle: s.allowOrigin})
		}
	}
	return all
}

// postPayloads returns the handler of a request with payloads. Pages of other origins are refused, and what a page of
// --ui-origin may read includes refusals.
func (s *Server) postPayloads(change payloadChange) func(http.ResponseWriter, *http.Request) (answer, error) {
	return func(w http.ResponseWriter, r *http.Request) (answer, error) {
		if err := s.setOrigin(w.Header(), r); err != nil {
			return answer{}, err
		}
		caller, err := s.callerOf(r)
		if err != nil {
			return answer{}, err
		}
		logWith(r, "caller", caller.name)
		line := audit.LoggedAction{Actor: caller.name, Proof: caller.proof, Action: change.action, Outcome: audit.Done}
		if !caller.mayDecodeAll() || !s.isNamespace(r) {
			return answer{}, s.logDenial(line, notFound())
		}
		if err := wantJSON(r.Header); err != nil {
			return answer{}, err
		}
		body, leave, err := s.admitRequest(w, r, admission{arrivals: s.arrivals, slots: s.decoding, sender: caller.id, most: MaxCodecBody})
		if err != nil {
			return answer{}, err
		}
		defer leave()
		var given commonpb.Payloads
		if err := protojson.Unmarshal(body, &given); err != nil {
			return answer{}, badRequest(`the body must be payloads, such as {"payloads": [{"metadata": …, "data": …}]}`)
		}
		changed, err := change.change(r.Context(), r, given.GetPayloads())
		if err != nil {
			line.Outcome, line.Type = audit.Refused, problemWord(err)
		}
		logWith(r, "payloads", len(given.GetPayloads()))
		if unlogged := s.Audit.Write(line); unlogged != nil {
			return answer{}, s.unloggedProblem(unlogged, "so nothing was decoded or encoded")
		}
		if err != nil {
			return answer{}, err
		}
		text, err := protojson.Marshal(&commonpb.Payloads{Payloads: changed})
		return answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: text}, err
	}
}

// isNamespace reports whether a request is about the namespace of the server: by its path, and by the header of Temporal's UI.
func (s *Server) isNamespace(r *http.Request) bool {
	for _, name := range []string{r.PathValue("namespace"), r.Header.Get("X-Namespace")} {
		if name != "" && name != s.Namespace {
			return false
		}
	}
	return true
}

// setOrigin lets a page of an allowed origin read the response. The error is for pages of others; programs send no origin.
func (s *Server) setOrigin(header http.Header, r *http.Request) error {
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	if !slices.Contains(s.Origins, origin) {
		return newProblem(http.StatusForbidden, "cross-origin", "pages of this origin may not decode; starter serve allows it with --ui-origin")
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true") // of a proxy in front, which knows who is logged in; here only tokens count
	return nil
}

// allowOrigin answers what a browser asks before a page sends a request.
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request) (answer, error) {
	if err := s.setOrigin(w.Header(), r); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent, header: http.Header{
		"Access-Control-Allow-Methods": {http.MethodPost},
		"Access-Control-Allow-Headers": {"Authorization, Content-Type, X-Namespace"},
		"Access-Control-Max-Age":       {"600"}, // seconds
	}}, nil
}

// CheckOrigin returns an error for a text that is not the origin of pages, as browsers send it.
func CheckOrigin(text string) error {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || text != at.Scheme+"://"+strings.ToLower(at.Host) {
		return fmt.Errorf("%q is not an origin, such as https://temporal.example.com", text)
	}
	return nil
}

// preserveReferences is the query parameter with which references to the payload store stay as they are.
const preserveReferences = "preserveStorageRefs"

// decodePayloads decrypts payloads, and replaces references to the payload store. Plain ones stay as they are, also where
// programs refuse them. Results of secret steps stay sealed: their key is another one.
func (s *Server) decodePayloads(ctx context.Context, r *http.Request, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded, size := make([]*commonpb.Payload, len(payloads)), 0
	for i, one := range payloads {
		var err error
		if codec.IsEncoded(one) {
			one, err = s.Encryption.DecodePayload(one)
		}
		if err == nil && codec.IsReference(one) && !strings.EqualFold(r.URL.Query().Get(preserveReferences), "true") {
			one, err = s.Store.ResolvePayload(ctx, one)
		}
		if err != nil {
			return nil, payloadProblem(err)
		}
		if size += len(one.GetData()); size > mostDecoded {
			return nil, newProblem(http.StatusRequestEntityTooLarge, "too-large", "the payloads have more than %d bytes together; ask for fewer", mostDecoded)
		}
		decoded[i] = one
	}
	return decoded, nil
}

// downloadPayloads reads values of the payload store, which all payloads must refer to.
func (s *Server) downloadPayloads(ctx context.Context, r *http.Request, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if slices.ContainsFunc(payloads, func(one *commonpb.Payload) bool { return !codec.IsReference(one) }) {
		return nil, badRequest("download needs references to values of the payload store")
	}
	return s.decodePayloads(ctx, r, payloads)
}

// encodePayloads encrypts payloads. They stay in the response, however large.
func (s *Server) encodePayloads(_ context.Context, _ *http.Request, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	encoded := make([]*commonpb.Payload, len(payloads))
	for i, one := range payloads {
		var err error
		if encoded[i], err = s.Encryption.EncodePayload(one); err != nil {
			return nil, payloadProblem(err)
		}
	}
	return encoded, nil
}

// payloadProblem returns the problem for payloads that cannot be decoded: the reason, which has no values.
func payloadProblem(err error) error {
	if missing, ok := errors.AsType[*codec.KeyError](err); ok {
		return newProblem(http.StatusUnprocessableEntity, "codec-key", "%s", missing)
	}
	if _, away := errors.AsType[*payload.StoreError](err); away {
		return newProblem(http.StatusServiceUnavailable, "payload-store", "%s", err).withHeader("Retry-After", "10")
	}
	return newProblem(http.StatusUnprocessableEntity, "payload-store", "%s", err)
}
