package secrets

import (
	"context"
	"fmt"
	"log/slog"

	"reprise/interpreter/lists"
)

// Handler returns a handler that masks log records before next sees them. A handler that already masks is returned
// unchanged.
func (s *Masker) Handler(next slog.Handler) slog.Handler {
	if masks, ok := next.(handler); ok && masks.secrets == s {
		return next
	}
	return handler{secrets: s, next: next}
}

type handler struct {
	secrets *Masker
	next    slog.Handler
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, record slog.Record) error {
	masked := slog.NewRecord(record.Time, record.Level, h.secrets.MaskText(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		masked.AddAttrs(h.maskAttr(attr))
		return true
	})
	return h.next.Handle(ctx, masked)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	masked := lists.Map(attrs, h.maskAttr)
	return handler{secrets: h.secrets, next: h.next.WithAttrs(masked)}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{secrets: h.secrets, next: h.next.WithGroup(name)}
}

func (h handler) maskAttr(attr slog.Attr) slog.Attr {
	value := attr.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		return slog.String(attr.Key, h.secrets.MaskText(value.String()))
	case slog.KindGroup:
		members := value.Group()
		masked := lists.Map(members, h.maskAttr)
		return slog.Attr{Key: attr.Key, Value: slog.GroupValue(masked...)}
	case slog.KindAny:
		// Values that may change later are logged as text.
		text := fmt.Sprintf("%+v", value.Any())
		if masked := h.secrets.MaskText(text); masked != text {
			return slog.String(attr.Key, masked)
		}
	}
	return slog.Attr{Key: attr.Key, Value: value}
}
