/** Names of requests: one that is repeated, because its answer was lost, has the name of the first, so that it is done once. */

import { useState } from 'react'

/** The names of the requests of one form. */
export interface RequestNames {
  /** The name of a request; the same as before for the same request. */
  readonly of: (request: object) => string
  /** The request was answered: the next one is another, even if it says the same. */
  readonly answered: () => void
}

/** Names for requests, which begin with `prefix`. */
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

/** The same for a component, as long as it is there. */
export const useRequestNames = (prefix: string): RequestNames => useState(() => requestNames(prefix))[0]

const random = (): string => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('')
