package serve

import (
	"context"
	"errors"
	"net/http"

	"reprise/internal/base/answers"
	"reprise/interpreter"
	"reprise/interpreter/mailbox"
)

// hasStored reports whether answers to the attempt are stored that no workflow has accepted yet. If that is unknown,
// the answer is sent directly. The error is that the mailbox is full.
func (s *Server) hasStored(ctx context.Context, mail mailbox.StoredAnswer) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	waiting, err := answers.HasWaiting(limited, s.Client, mail)
	if errors.Is(err, answers.ErrFull) {
		return waiting, errFull
	}
	return waiting && err == nil, nil
}

// storeAnswer stores an answer on the Temporal server until a worker delivers it.
func (s *Server) storeAnswer(ctx context.Context, mail mailbox.StoredAnswer) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	done, err := s.storing.Enter(limited, mail.MailboxID())
	if err != nil {
		return answer{}, err
	}
	defer done()
	switch err := answers.DepositAnswer(limited, s.Client, mail); {
	case errors.Is(err, answers.ErrClosed):
		return answer{}, errLate
	case errors.Is(err, answers.ErrFull):
		return answer{}, errFull
	case err != nil:
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, body: callbackAnswer{}}, nil
}

// refusalOr returns the problem for a late answer. If the same answer was stored before and then refused, it says
// why.
func (s *Server) refusalOr(ctx context.Context, mail mailbox.StoredAnswer, err error) error {
	if !errors.Is(err, errLate) || mail.Answer.Verb == interpreter.AnswerProgress {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if why, found := answers.RefusalReason(limited, s.Client, mail); found {
		return errRefused(why)
	}
	return err
}
