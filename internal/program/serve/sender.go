package serve

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"reprise/activities/tool"
	"reprise/internal/base/audit"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// requestOfSender reads a delivery that was signed for one of the playbook's triggers.
func (s *Server) requestOfSender(r *http.Request, body []byte) (startRequest, error) {
	name := r.PathValue("name")
	source, err := s.readPlaybook(name)
	var absent *Problem
	if err != nil && !errors.As(err, &absent) {
		return startRequest{}, err
	}
	trigger := s.signedTrigger(name, source, r.Header, body)
	if trigger == nil {
		return startRequest{}, unauthorizedProblem()
	}
	read, err := readDelivery(trigger, r.Header, body)
	if err != nil {
		return startRequest{}, err
	}
	if r.URL.Query().Has(waitParameter) {
		return startRequest{}, badRequest("only callers with a token can use wait")
	}
	order := startRequest{
		request: request{Caller: senderName(trigger), Playbook: name, Body: hashOf([]byte(read.id))},
		actor:   senderName(trigger), proof: audit.ProofSignature,
		key: read.id, byBody: read.byBody, source: source, workload: map[string]any{playbook.TriggerKey: read.trigger},
	}
	switch {
	case trigger.Identity != "":
		order.Body = hashOf(body) // the header is not signed: it is another delivery's where the bodies differ
	case !read.byBody:
		if order.Content, err = contentOf(trigger, read.body); err != nil {
			return startRequest{}, err
		}
	}
	if trigger.ID != nil {
		order.idAdvice = fmt.Sprintf(". If %s is the ID of what the deliveries are about, name a member in id that is different in each delivery, "+
			"or a header: identity: header NAME in metadata.triggers", strings.Join(trigger.ID, "."))
	}
	switch {
	case trigger.Sender == playbook.Slack && textAt(read.body, "type") == "url_verification":
		order.instead = &answer{status: http.StatusOK, body: map[string]string{"challenge": textAt(read.body, "challenge")}}
	case !read.startsRun(trigger):
		order.instead = &answer{status: http.StatusOK, body: map[string]bool{"ignored": true}}
	}
	return order, nil
}

// contentOf returns the hash of the values of a delivery, however their text is formatted. Repetitions by Stripe differ in how many
// webhooks await the event.
func contentOf(trigger *playbook.Trigger, body any) (string, error) {
	if values, isMap := body.(map[string]any); isMap && trigger.Sender == playbook.Stripe {
		values = maps.Clone(values)
		delete(values, "pending_webhooks")
		body = values
	}
	text, err := expression.Encode(body)
	if err != nil {
		return "", badRequest("the body: %v", err)
	}
	return hashOf(text), nil
}

// senderName returns the name of a trigger's sender as a caller. Callers with a token have no @ in their names.
func senderName(trigger *playbook.Trigger) string {
	identity := trigger.SignerName()
	if !callerName.MatchString(identity) {
		identity = "~" + hashOf([]byte(identity))
	}
	return "@" + identity
}

// signedTrigger returns the trigger of a playbook for which a body was signed; nil if there is none. An unknown
// playbook takes the same time.
func (s *Server) signedTrigger(name string, source []byte, header http.Header, body []byte) *playbook.Trigger {
	triggers := []*playbook.Trigger{}
	if source != nil {
		book, err := interpreter.LoadPlaybook(name+".yaml", string(source))
		if err == nil {
			triggers = book.Triggers
		} else {
			s.Logger.Warn("a delivery was refused, because its playbook cannot be read", "playbook", name, "error", err)
		}
	}
	if len(triggers) == 0 {
		_ = verifySignature(&playbook.Trigger{Sender: playbook.GitHub}, s.nobody, header, body, s.Now())
	}
	for _, trigger := range triggers {
		err := s.verifyDelivery(trigger, header, body)
		if err == nil {
			return trigger
		}
		if !errors.Is(err, errUnsigned) {
			s.Logger.Warn("a delivery was refused", "playbook", name, "sender", trigger.Sender, "error", err)
		}
	}
	return nil
}

var (
	errNoSecret    = errors.New("its secret is not a connection that this program knows")
	errShortSecret = errors.New("its secret is shorter than 16 bytes")
)

// TriggerSecret returns the secret of a trigger. The error says why there is none.
func TriggerSecret(from tool.ConnectionResolver, trigger *playbook.Trigger) (string, error) {
	if from == nil {
		return "", errNoSecret
	}
	secret, known := from.Connection(trigger.Secret)
	switch {
	case !known:
		return "", errNoSecret
	case len(secret) < minSecret:
		return "", errShortSecret
	}
	return secret, nil
}

func (s *Server) verifyDelivery(trigger *playbook.Trigger, header http.Header, body []byte) error {
	secret, err := TriggerSecret(s.Secrets, trigger)
	if err != nil {
		return err
	}
	s.Masked.AddConnection(secret)
	return verifySignature(trigger, secret, header, body, s.Now())
}
