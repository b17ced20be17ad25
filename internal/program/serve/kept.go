package serve

import (
	"context"
	"errors"
	"net/http"

	"reprise/internal/base/answers"
	"reprise/interpreter"
)

// hasKept reports whether answers to the attempt are stored that no workflow has accepted yet. If that is unknown,
// the answer is sent directly. The error is that the mailbox is full.
func (s *Server) hasKept(ctx context.Context, kept interpreter.MailboxAnswer) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	keeps, err := answers.HasWaiting(limited, s.Client, kept)
	if errors.Is(err, answers.ErrFull) {
		return keeps, errFull
	}
	return keeps && err == nil, nil
}

// keepAnswer stores an answer on the Temporal server until a worker delivers it.
func (s *Server) keepAnswer(ctx context.Context, kept interpreter.MailboxAnswer) (answer, error) {
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	done, err := s.keeping.Enter(limited, kept.Answer.MailboxID(kept.Workflow))
	if err != nil {
		return answer{}, err
	}
	defer done()
	switch err := answers.DepositAnswer(limited, s.Client, kept); {
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
func (s *Server) refusalOr(ctx context.Context, kept interpreter.MailboxAnswer, err error) error {
	if !errors.Is(err, errLate) || kept.Answer.Verb == interpreter.AnswerProgress {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if why, found := answers.RefusalReason(limited, s.Client, kept); found {
		return errRefused(why)
	}
	return err
}
