import { wholeNumber } from '../resp/whole-number.js'
import type { ListedClient } from './session-commands.js'

/** Whether a client is meant. */
export type ClientFilter = (client: ListedClient) => boolean

/** A filter, or the text of the error that the engine would answer. */
export type FilterOutcome = { readonly filter: ClientFilter } | { readonly problem: string }

/** `KILL` also tells whether the client that asks may be among those that are meant. */
export type KillOutcome = { readonly filter: ClientFilter; readonly sparesSelf: boolean } | { readonly problem: string }

const SYNTAX_ERROR = { problem: 'ERR syntax error' }

/** Reads what follows CLIENT LIST: nothing, `TYPE kind`, or `ID id…`. */
export function listFilter(args: readonly string[]): FilterOutcome {
  const [word, first, ...rest] = args
  if (word === undefined) return { filter: () => true }
  if (word.toUpperCase() === 'TYPE' && first !== undefined && rest.length === 0) return ofKind(first)
  if (word.toUpperCase() !== 'ID' || first === undefined) return SYNTAX_ERROR
  const ids = new Set([first, ...rest].map(wholeNumber))
  if (ids.has(undefined)) return { problem: 'ERR Invalid client ID' }
  return { filter: ({ profile }) => ids.has(profile.id) }
}

/** Reads the pairs that follow CLIENT KILL. All have to fit. `isUser` tells whether there is a user of that name. */
export function killFilter(args: readonly string[], isUser: (name: string) => boolean): KillOutcome {
  if (args.length % 2 === 1) return SYNTAX_ERROR
  let sparesSelf = true
  const filters: ClientFilter[] = []
  for (let at = 0; at < args.length; at += 2) {
    const [word = '', value = ''] = [args[at]?.toUpperCase(), args[at + 1]]
    if (word === 'SKIPME') {
      if (!/^(yes|no)$/i.test(value)) return SYNTAX_ERROR
      sparesSelf = value.toLowerCase() === 'yes'
      continue
    }
    const outcome = pairFilter(word, value, isUser)
    if ('problem' in outcome) return outcome
    filters.push(outcome.filter)
  }
  return { sparesSelf, filter: (client) => filters.every((fits) => fits(client)) }
}

function pairFilter(word: string, value: string, isUser: (name: string) => boolean): FilterOutcome {
  switch (word) {
    case 'ID': {
      const id = wholeNumber(value)
      if (id === undefined || id < 1) return { problem: 'ERR client-id should be greater than 0' }
      return { filter: ({ profile }) => profile.id === id }
    }
    case 'TYPE':
      return ofKind(value)
    case 'USER':
      if (!isUser(value)) return { problem: `ERR No such user '${value}'` }
      return { filter: ({ user }) => user === value }
    case 'ADDR':
      return { filter: ({ profile }) => profile.address === value }
    case 'LADDR':
      return { filter: ({ profile }) => profile.localAddress === value }
    default:
      return SYNTAX_ERROR
  }
}

/** Nobody here is the engine's own peer. */
function ofKind(word: string): FilterOutcome {
  switch (word.toLowerCase()) {
    case 'normal':
      return { filter: ({ kind }) => kind === 'normal' }
    case 'pubsub':
      return { filter: ({ kind }) => kind === 'pubsub' }
    case 'master':
    case 'slave':
    case 'replica':
      return { filter: () => false }
    default:
      return { problem: `ERR Unknown client type '${word}'` }
  }
}
