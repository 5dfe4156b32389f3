import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { closeSync, openSync } from 'node:fs'
import { codeOf, isOutOfDescriptors } from './errors.js'
import { OwnerConcurrency } from './task-limits.js'

/** Collaborators of `NameLookups`. */
export interface NameLookupsDeps {
  /** Asks the system for all addresses of a name. */
  readonly ask: (name: string, family: number | undefined) => Promise<LookupAddress[]>
  /** Whether a name server answers queries for a name, even with an error. Takes no thread, and never rejects. */
  readonly isAnswered: (name: string) => Promise<boolean>
}

/**
 * Looks names up as the system does: with its files, search domains and other sources.
 *
 * A look-up occupies one of the two threads that Node has for them. If the name server is silent, the thread is blocked for
 * ten seconds and more, so a few messages to such a name would delay all others. So only one look-up at a time may be for a
 * name whose server has not been tried. While it runs, another name is looked up once a name server answers a query for it:
 *
 *   requested ──no untried name is being looked up──▶ looked up
 *       └──▶ waits ──its turn comes, or a name server answers──▶ looked up
 *              └──── no name server answers ────▶ refused
 *
 * Concurrent calls for the same name share one look-up.
 */
export class NameLookups {
  readonly #deps: NameLookupsDeps
  readonly #pending = new Map<string, Promise<LookupAddress[]>>()
  readonly #unknown = new OwnerConcurrency(1)

  constructor(deps: NameLookupsDeps = { ask: askSystem, isAnswered: isAnsweredByServer }) {
    this.#deps = deps
  }

  /** All addresses of a name; rejects with the error of the system. */
  find(name: string, family?: number): Promise<LookupAddress[]> {
    const key = `${name} ${family ?? ''}`
    const pending = this.#pending.get(key) ?? this.#find(name, family).finally(() => this.#pending.delete(key))
    this.#pending.set(key, pending)
    return pending
  }

  async #find(name: string, family: number | undefined): Promise<LookupAddress[]> {
    const { ask, isAnswered } = this.#deps
    // The system finds this name in its files.
    if (name === 'localhost') return ask(name, family)
    let isSilent = false
    const end = await this.#unknown.begin('', (leave) => {
      void isAnswered(name).then((isKnown) => {
        isSilent = !isKnown
        leave()
      })
    })
    if (!end && isSilent) throw Object.assign(new Error(`no name server answers for ${name}`), { code: 'EAI_AGAIN' })
    try {
      return await ask(name, family)
    } finally {
      end?.()
    }
  }
}

function askSystem(name: string, family: number | undefined): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    dnsLookup(name, { all: true, ...(family !== undefined && { family }) }, (error, addresses) => {
      if (error) reject(shortage() ?? error)
      else resolve(addresses)
    })
  })
}

/**
 * The error of a process or machine without a free file descriptor; undefined when there is one. Without a descriptor the
 * system cannot open its files of names, and reports that the name does not exist.
 */
function shortage(): unknown {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return undefined
  } catch (error) {
    return isOutOfDescriptors(error) ? error : undefined
  }
}

/** Timeout for each query to a name server. Each server is queried twice. */
const ANSWER_WITHIN_MS = 2_500
/** The settings of the system are read again after this time. */
const SETTINGS_FOR_MS = 10_000

let resolver: Resolver | undefined
let madeMs = 0

/** All queries within `SETTINGS_FOR_MS` share the sockets of one resolver. */
function currentResolver(): Resolver {
  const nowMs = performance.now()
  if (resolver && nowMs - madeMs < SETTINGS_FOR_MS) return resolver
  resolver = new Resolver({ timeout: ANSWER_WITHIN_MS, tries: 2 })
  madeMs = nowMs
  return resolver
}

/**
 * Queries for addresses of both families, because the system does so too and waits for both answers. Only a timeout means
 * that the server is silent: a name that cannot be queried at all is refused at once.
 */
async function isAnsweredByServer(name: string): Promise<boolean> {
  const server = currentResolver()
  const ask = async (question: 'resolve4' | 'resolve6') => server[question](name)
  const asked = await Promise.allSettled([ask('resolve4'), ask('resolve6')])
  return asked.every((one) => one.status === 'fulfilled' || codeOf(one.reason) !== 'ETIMEOUT')
}
