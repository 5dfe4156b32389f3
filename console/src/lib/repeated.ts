/** Names for requests, as idempotency keys: a repeated request, whose answer was lost, keeps its name and runs only once. */

import { useState } from 'react'

/** The names of the requests of one form. */
export interface RequestNames {
  /** The name of a request; the same request gets the same name again. */
  readonly of: (request: object) => string
  /** The request was answered: the next one gets a new name, even if its content is the same. */
  readonly answered: () => void
}

/** Makes names that begin with `prefix`. */
export function requestNames(prefix: string): RequestNames {
  let last: { readonly asked: string; readonly name: string } | undefined
  return {
    of: (request) => {
      const asked = JSON.stringify(request)
      if (last?.asked !== asked) last = { asked, name: prefix + random() }
      return last.name
    },
    answered: () => {
      last = undefined
    },
  }
}

/** The same for a component, as long as it is mounted. */
export const useRequestNames = (prefix: string): RequestNames => useState(() => requestNames(prefix))[0]

const random = (): string => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('')
