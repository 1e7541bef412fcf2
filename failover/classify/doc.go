// Package classify turns what a model API answered into the reason a request failed, by the rules of
// spec/failover.md §6.
//
// It is pure: bytes in, verdict out. Time comes in as Input.Now, and Go errors come in as an
// llm.Transport, which the border made of them.
//
//	Input ─► transport? ──────────────────────────────────────────► Failure
//	  │ no
//	  └─► decode: find the error objects, outermost first ──┐
//	        answer: text, finish reasons (never an error)   │
//	                                                        ▼
//	      judge, innermost cause first:
//	        literals ► decisive codes ► hard text ► plain codes ► soft text
//	      then weak codes, then the HTTP status ──────────────────► Failure + scope + time hints
//
// Text is looked at last, in words, and only the provider's own error message is looked at. Quoted
// spans, addresses and ids are opaque: nothing a user, a model or an operator named can match.
// Rules for one provider never fire for another.
package classify
