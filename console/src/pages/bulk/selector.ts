/** The selection of the wizard: as URL parameters and as an API selector. */
import type { Clock } from '../../components/undo.js'
import { given, textAt, wholeAt } from '../../lib/search.js'
import { headersOf, NO_DELIVERY } from '../queue/delivery-form.js'
import { type Conditions, conditionFields, conditionsAt, conditionsFor } from './conditions.js'
import { FAMILIES, FAMILY_OF, type FilterName, filterNamesOf } from './families.js'
import type { Kind } from './words.js'

// Safe: the keys of an object literal.
const KINDS = Object.keys(FAMILY_OF) as readonly Kind[]

/** The selection in the URL. Times are Unix milliseconds. */
export interface Choice extends Conditions {
  /** Absent: `cancelRuns`. */
  readonly kind?: Kind
  readonly url?: string
  /** Match the whole URL instead of a prefix. Only for active runs; URLs of other items are always matched as a whole. */
  readonly exact?: true
  readonly label?: string
  readonly host?: string
  readonly path?: string
  readonly queue?: string
  readonly group?: string
  readonly schedule?: string
  readonly caller?: string
  readonly flow?: string
  readonly from?: number
  readonly to?: number
  readonly status?: number
  /** IDs of runs, messages or dead letters; other filters are then ignored. */
  readonly ids?: readonly string[]
}

/** The steps of the wizard after the first one. */
const LATER_STEPS = ['check', 'confirm'] as const

/** The URL of the wizard. */
export interface WizardSearch extends Choice {
  /** Absent: the first step. */
  readonly step?: (typeof LATER_STEPS)[number]
}

/** The settings of the action, which are not in the URL. */
export interface Settings {
  readonly reason: string
  readonly ratePerSecond: number | ''
  /** Length of the fence, during which matching triggers are refused, milliseconds; 0: no fence. */
  readonly fenceMs: number
  /** For redelivery: settings that replace the original ones. */
  readonly delay: string
  readonly retries: number | ''
  /** For a pause. */
  readonly pauseClock: 'keep' | 'hold'
  /** For an undo. */
  readonly undoClock: Clock
}

/** Empty settings. */
export const NO_SETTINGS: Settings = {
  reason: '',
  ratePerSecond: '',
  fenceMs: 0,
  delay: '',
  retries: '',
  pauseClock: 'keep',
  undoClock: 'original',
}

/** The kind of action. */
export const kindOf = ({ kind = 'cancelRuns' }: Choice): Kind => kind

const idsAt = ({ ids }: Record<string, unknown>): readonly string[] | undefined => {
  const texts = Array.isArray(ids) ? ids.filter((id): id is string => typeof id === 'string' && id !== '') : []
  return texts.length > 0 ? texts : undefined
}

/** Reads the URL of the wizard. */
export function wizardSearchAt(search: Record<string, unknown>): WizardSearch {
  return { ...choiceOf(search), ...given({ step: LATER_STEPS.find((known) => known === search.step) }) }
}

/** Reads the selection in a URL. */
export function choiceOf(search: Record<string, unknown>): Choice {
  return {
    ...given({
      kind: KINDS.find((known) => known === search.kind),
      url: textAt(search, 'url'),
      label: textAt(search, 'label'),
      host: textAt(search, 'host'),
      path: textAt(search, 'path'),
      queue: textAt(search, 'queue'),
      group: textAt(search, 'group'),
      schedule: textAt(search, 'schedule'),
      caller: textAt(search, 'caller'),
      flow: textAt(search, 'flow'),
      from: wholeAt(search, 'from'),
      to: wholeAt(search, 'to'),
      status: wholeAt(search, 'status'),
      ids: idsAt(search),
    }),
    ...conditionsAt(search),
    ...(search.exact === true && { exact: true }),
  }
}

/** Most IDs in the address: servers and proxies refuse addresses of some kilobytes when the page is reloaded. */
const MAX_IDS_IN_ADDRESS = 50

/** The choice as it is in the address of the wizard: without IDs if there are too many. */
export const addressOf = ({ ids, ...choice }: Choice): Choice =>
  ids === undefined || ids.length > MAX_IDS_IN_ADDRESS ? choice : { ...choice, ids }

/** The same selection for another kind of action, without the filters that this kind lacks. */
export function withKind(choice: Choice, kind: Kind): Choice {
  const isAlike = FAMILY_OF[kind] === FAMILY_OF[kindOf(choice)]
  if (isAlike) return { ...choice, kind }
  const kept = filterNamesOf(kind).map((name) => [name, choice[name]])
  return { ...given(Object.fromEntries(kept)), ...conditionsFor(FAMILY_OF[kind], choice), kind }
}

/** The selector in the form of the API. */
export function selectorOf(choice: Choice): Record<string, unknown> {
  const kind = kindOf(choice)
  const { ids, filters } = FAMILIES[FAMILY_OF[kind]]
  if (choice.ids !== undefined) return { [ids]: choice.ids }
  const fields = filterNamesOf(kind).map((name) => [filters[name], selectorValue(choice, name)])
  return given({
    ...Object.fromEntries(fields),
    ...conditionFields(FAMILY_OF[kind], choice),
    workflowUrlExactMatch: selectsActiveRuns(kind) && choice.url !== undefined ? choice.exact : undefined,
  })
}

/** Whether the items are active runs, whose URLs are matched by prefix. */
export const selectsActiveRuns = (kind: Kind): boolean => FAMILY_OF[kind] === 'runs'

/** The value of a filter in a selector: a list, except for times and for all filters of active runs. */
function selectorValue(choice: Choice, name: FilterName): unknown {
  const value = choice[name]
  const isSingle = value === undefined || name === 'from' || name === 'to' || selectsActiveRuns(kindOf(choice))
  return isSingle ? value : [value]
}

/** Whether the choice has conditions. A fence cannot test them. */
export const hasConditions = (choice: Choice): boolean =>
  choice.ids === undefined && Object.keys(conditionFields(FAMILY_OF[kindOf(choice)], choice)).length > 0

/** Whether no filter is set, which selects everything. */
export const selectsEverything = (choice: Choice): boolean => Object.keys(selectorOf(choice)).length === 0

const SENT_AGAIN: readonly Kind[] = ['retryDeadLetters', 'resumeRuns', 'restartRuns']

/** Whether the items are delivered again. */
export const isRedelivery = (choice: Choice): boolean => SENT_AGAIN.includes(kindOf(choice))

/** The request headers, which set how items are delivered again. */
export const sendingHeaders = (choice: Choice, { delay, retries }: Settings): Record<string, string> =>
  isRedelivery(choice) ? headersOf({ ...NO_DELIVERY, delay, retries }, []) : {}

/** Whether the action brings cancelled items back. */
export const isUndo = (kind: Kind): boolean => kind === 'undoCancelRuns' || kind === 'undoCancelMessages'

/** The fields beside the selector in the request. */
export function settingsOf(kind: Kind, settings: Settings, nowMs: number) {
  const { reason, ratePerSecond, fenceMs, pauseClock, undoClock } = settings
  return given({
    reason: reason.trim() === '' ? undefined : reason.trim(),
    ratePerSecond: ratePerSecond === '' ? undefined : ratePerSecond,
    fenceUntil: fenceMs === 0 || kind !== 'cancelRuns' ? undefined : nowMs + fenceMs,
    pauseClock: kind === 'pauseRuns' && pauseClock === 'hold' ? pauseClock : undefined,
    clock: isUndo(kind) && undoClock !== 'original' ? undoClock : undefined,
  })
}
