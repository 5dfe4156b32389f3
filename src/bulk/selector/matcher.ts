import type { Starting } from '../../workflow/index.js'
import type { Target } from './selector.js'

/** Judges runs that are made now by a target: the conditions of `bulk-select.ts`, in memory. */

/** Whether a run that is made at this time, Unix milliseconds, is one of those that a target means. */
export type Matcher = (run: Starting, now: number) => boolean

/** What a text costs in memory besides its characters: its place in a set, and its head. */
const TEXT_BYTES = 64

/** Makes the matcher of a target. Long lists are gone through here, once, and not for every run. */
export function matcherOf(target: Target): Matcher {
  if (target.kind === 'named') {
    const ids = new Set(target.ids)
    return ({ run_id }) => ids.has(run_id)
  }
  const { urlPrefix, createdAfter = Number.NEGATIVE_INFINITY, createdBefore = Number.POSITIVE_INFINITY } = target.filter
  const { url, label, host, path, callerIp, flowKey } = asSets(target.filter)
  return (run, now) =>
    (urlPrefix === undefined || urlPrefix.some((prefix) => run.url.startsWith(prefix))) &&
    has(url, run.url) &&
    (label === undefined || labelsOf(run).some((name) => label.has(name))) &&
    has(host, run.host) &&
    has(path, run.path) &&
    has(callerIp, run.caller_ip) &&
    has(flowKey, run.flow_key) &&
    now > createdAfter &&
    now < createdBefore
}

/** How much memory a target takes, about: at least as much as its texts. */
export function bytesOf(target: Target): number {
  const lists = target.kind === 'named' ? [target.ids] : Object.values(target.filter)
  const texts = lists.flatMap((list) => (typeof list === 'number' ? [] : list))
  return texts.reduce((sum, text) => sum + text.length * 2 + TEXT_BYTES, 0)
}

type Filter = Extract<Target, { kind: 'matching' }>['filter']
type Sets = Partial<Record<'url' | 'label' | 'host' | 'path' | 'callerIp' | 'flowKey', ReadonlySet<string>>>

function asSets({ url, label, host, path, callerIp, flowKey }: Filter): Sets {
  const lists = Object.entries({ url, label, host, path, callerIp, flowKey })
  return Object.fromEntries(lists.flatMap(([name, list]) => (list ? [[name, new Set(list)]] : [])))
}

const has = (set: ReadonlySet<string> | undefined, text: string | null): boolean =>
  set === undefined || (text !== null && set.has(text))

/** Labels stand between bars. */
const labelsOf = ({ labels }: Starting): string[] => labels.split('|').filter((label) => label !== '')
