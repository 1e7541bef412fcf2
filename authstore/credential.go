package authstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/llm"
)

// refreshMargin is how long an access token must still last to be used without a refresh
// (spec/failover.md §13).
const refreshMargin = 5 * time.Minute

// Credential returns what an attempt with the profile authenticates with. An OAuth access token
// with at most 5 minutes left is refreshed first, by one caller for all (spec/failover.md §13); a
// passing failure of that does not matter while the old token still works.
//
// An error is an *llm.Error of reason auth or auth_permanent when the profile is to blame, an
// *llm.Error of reason aborted or timeout when ctx ended, or one of ErrNoProfile,
// ErrRefreshLocked and ErrClosed. Anything else is a fault of ours.
func (s *Store) Credential(ctx context.Context, id llm.ProfileID) (llm.Credential, error) {
	p, owner, err := s.find(ctx, normal(id))
	if err != nil {
		return llm.Credential{}, err
	}
	if p.Secret.IsZero() && !p.Reference.IsZero() {
		p.Secret = owner.follow(p.Reference)
	}
	now := s.deps.Clock.Now()
	switch {
	case p.Kind == llm.KindOAuth && p.fresh(now):
	case p.Kind == llm.KindOAuth && !p.Refresh.IsZero() && owner.deps.Refresher != nil:
		return owner.refreshed(ctx, p.ID)
	case p.Secret.IsZero() && !p.Reference.IsZero():
		return llm.Credential{}, &llm.Error{Failure: llm.Failure{
			Reason: llm.ReasonAuth, Message: fmt.Sprintf("the secret that profile %s refers to is not there", p.ID), Rule: "credential_unresolved",
		}}
	case !p.valid(now):
		return llm.Credential{}, &llm.Error{Failure: llm.Failure{
			Reason: llm.ReasonAuth, Message: fmt.Sprintf("the sign-in of profile %s has expired", p.ID), Rule: "credential_expired",
		}}
	}
	owner.hide(p)
	return p.credential(), nil
}

// hide tells the redactor about secrets that are about to be used.
func (s *Store) hide(p Profile) {
	if s.deps.Hide != nil {
		s.deps.Hide(p.Secret, p.Refresh)
	}
}

// fresh reports whether the secret need not be refreshed.
func (p Profile) fresh(now time.Time) bool {
	return !p.Secret.IsZero() && (p.Expires.IsZero() || p.Expires.Sub(now) > refreshMargin)
}

// valid reports whether the secret works at all.
func (p Profile) valid(now time.Time) bool {
	return !p.Secret.IsZero() && (p.Expires.IsZero() || now.Before(p.Expires))
}

func (p Profile) credential() llm.Credential {
	return llm.Credential{
		Profile: p.ID, Kind: p.Kind, Secret: p.Secret, Expires: p.Expires,
		AccountID: p.AccountID, ProjectID: p.ProjectID, EnterpriseURL: p.EnterpriseURL,
	}
}

// interrupted says how a wait for a sign-in ended with its context.
func interrupted(id llm.ProfileID, cause error) error {
	f := llm.Failure{Reason: llm.ReasonTimeout, Detail: llm.DetailDeadline, NotSent: true}
	for _, stop := range []error{llm.ErrStopped, llm.ErrInterrupted, llm.ErrShutdown, context.Canceled} {
		if errors.Is(cause, stop) {
			f = llm.Failure{Reason: llm.ReasonAborted}
		}
	}
	return &llm.Error{Failure: f, Err: fmt.Errorf("waiting for the sign-in of profile %s: %w", id, cause)}
}
