import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { closeSync, openSync } from 'node:fs'
import { codeOf, isOutOfDescriptors } from './errors.js'
import { FewAtOnce } from './turns.js'

/** What look-ups are made with. */
export interface NameLookupsDeps {
  /** Asks the system for all addresses of a name. */
  readonly ask: (name: string, family: number | undefined) => Promise<LookupAddress[]>
  /** Whether a name server answers questions about a name, whatever it answers. Takes no thread, and never rejects. */
  readonly isAnswered: (name: string) => Promise<boolean>
}

/**
 * Looks names up, as the system does it: with its files, search domains and other sources.
 *
 * A look-up takes a thread of this process, and only two serve them. A name whose server is silent takes one for ten seconds
 * and more, so a few messages to such a name would keep all others from being sent. So one look-up at a time is of a name
 * that nothing is known of. Beside it only those are made of which a name server has just answered a question:
 *
 *   asked for ──nothing else is looked up, or its turn has come──▶ looked up
 *       └──▶ waits for its turn ──a name server answers──▶ looked up
 *                         └──── none does ────▶ refused
 *
 * All who ask for a name at the same time get the same answer.
 */
export class NameLookups {
  readonly #deps: NameLookupsDeps
  readonly #pending = new Map<string, Promise<LookupAddress[]>>()
  readonly #unknown = new FewAtOnce(1)

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
    // It is in the files of the system.
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
 * The system looks into files. When it cannot open them because this process or machine has no file descriptor left, it
 * says that it does not know the name.
 */
function shortage(): unknown {
  try {
    closeSync(openSync('/dev/null', 'r'))
    return undefined
  } catch (error) {
    return isOutOfDescriptors(error) ? error : undefined
  }
}

/** Of each name server; it is asked twice. */
const ANSWER_WITHIN_MS = 2_500
/** The settings of the system are read again after this time. */
const SETTINGS_FOR_MS = 10_000

let resolver: Resolver | undefined
let madeMs = 0

/** All questions of a while share the sockets of one resolver. */
function currentResolver(): Resolver {
  const nowMs = performance.now()
  if (resolver && nowMs - madeMs < SETTINGS_FOR_MS) return resolver
  resolver = new Resolver({ timeout: ANSWER_WITHIN_MS, tries: 2 })
  madeMs = nowMs
  return resolver
}

/** The system asks for addresses of both kinds, and waits for both answers. A name that nobody can ask about is no silent one. */
async function isAnsweredByServer(name: string): Promise<boolean> {
  const server = currentResolver()
  const ask = async (question: 'resolve4' | 'resolve6') => server[question](name)
  const asked = await Promise.allSettled([ask('resolve4'), ask('resolve6')])
  return asked.every((one) => one.status === 'fulfilled' || codeOf(one.reason) !== 'ETIMEOUT')
}
