import type { Random } from '../../../base/testing/random.js'
import type { BatchReply } from '../../../queue/index.js'

/** How long a debounced run waits for a newer trigger. */
const DELAY_MS = 30_000
const KEYS = ['left', 'right'] as const
const RULES = {
  debounce: { 'homeport-debounce-delay': `${DELAY_MS / 1_000}s` },
  skip: { 'homeport-singleton-mode': 'skip' },
  cancel: { 'homeport-singleton-mode': 'cancel' },
} as const
type RuleName = keyof typeof RULES

/** A debounce or singleton key of a trigger, with its rule. */
export interface Rule {
  readonly name: RuleName
  /** The rule and the key: equal keys of different rules are different keys. */
  readonly place: string
  readonly headers: Readonly<Record<string, string>>
  /** How long after the trigger the run is due at the earliest, milliseconds. */
  readonly delayMs: number
}

/** A random debounce or singleton key. */
export function someRule(random: Random): Rule {
  const name = random.pick(Object.keys(RULES) as RuleName[]) ?? 'skip'
  const key = random.pick(KEYS) ?? 'left'
  const kind = name === 'debounce' ? name : 'singleton'
  const headers = { [`homeport-${kind}`]: key, ...RULES[name] }
  return { name, place: `${kind} ${key}`, headers, delayMs: name === 'debounce' ? DELAY_MS : 0 }
}

/** Tracks which run or message holds each debounce and singleton key, without reading the store. */
export class RuleWatch {
  readonly #holders = new Map<string, string>()
  readonly #isActive: (runId: string) => boolean

  constructor(isActive: (runId: string) => boolean) {
    this.#isActive = isActive
  }

  /** The active run that holds a key. A debounced run holds its key until its first request. */
  holder({ place }: Rule): string | undefined {
    const runId = this.#holders.get(place)
    return runId !== undefined && this.#isActive(runId) ? runId : undefined
  }

  /** A request of a run begins. */
  sent(runId: string): void {
    for (const [place, holder] of this.#holders)
      if (holder === runId && place.startsWith('debounce')) this.#holders.delete(place)
  }

  /** A run or message has taken the key. */
  taken(id: string, { place }: Rule): void {
    this.#holders.set(place, id)
  }

  /**
   * A trigger was answered. Throws if it should have started a run and did not, or cancelled another run than the holder.
   * @param holder before the trigger.
   * @returns whether it has started the run.
   */
  triggered(runId: string, rule: Rule, holder: string | undefined, reply: BatchReply): boolean {
    const isSkipped = rule.name === 'skip' && holder !== undefined
    const { replaced, deduplicated, workflowRunId } = reply as Partial<Record<string, unknown>>
    const expected = isSkipped ? holder : runId
    if (workflowRunId !== expected || (deduplicated === true) !== isSkipped)
      throw new Error(`a trigger with the ${rule.place} key, held by ${holder}, was answered ${JSON.stringify(reply)}`)
    if (replaced !== (isSkipped ? undefined : holder))
      throw new Error(`${runId} has replaced ${replaced}, and ${holder} holds the ${rule.place} key`)
    if (!isSkipped) this.taken(runId, rule)
    return !isSkipped
  }
}
