/**
 * The catalogue of errors: every error that a caller can get is declared once, with everything a listener needs to
 * render it. A text says what is wrong, what was found and what to do, in one or two sentences.
 *
 * - `status`: the HTTP status.
 * - `resp`: the first word of the error on the Redis protocol and, for the data plane, in REST texts too.
 * - `retry`: `later` if the same request may succeed after a wait; the answer then has `Retry-After`.
 */
export interface ErrorEntry<Details> {
  readonly status: number
  readonly resp?: string
  readonly retry?: 'later'
  readonly text: (details: Details) => string
}

/** Declares an entry: the identity function, for type inference. */
export const define = <Details>(entry: ErrorEntry<Details>): ErrorEntry<Details> => entry

/** The details of an error without details. */
export type None = Record<string, never>
