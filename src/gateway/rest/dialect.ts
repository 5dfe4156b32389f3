import type { Argument } from '../resp/encode.js'
import { encodeCommand } from '../resp/encode.js'
import type { PreparedCommand } from './prepare.js'
import { isPrepared, type Slot } from './slots.js'

/**
 * What clients of the REST API may ask for and engines do not have, in words that engines understand. Only for the owner
 * of a database: another user may not be allowed what this takes.
 */
const REWRITES: Readonly<Record<string, (args: readonly Argument[]) => readonly Argument[] | undefined>> = {
  SCAN: scanWithTypes,
  XREADGROUP: readWithoutConsumer,
  XTRIM: trimExactly,
}

const SCAN_TYPES = `local found=redis.call('SCAN',unpack(ARGV)) local both={}
for _,key in ipairs(found[2]) do both[#both+1]=key both[#both+1]=redis.call('TYPE',key).ok end
return {found[1],both}`
/** COUNT is a hint, and this much is looked at in a few milliseconds. */
const MOST_COUNT = 10_000

/** Engines create a consumer that reads without acknowledging; here it leaves nothing behind unless it was there. */
const READ_NOACK = `local known={}
for i,key in ipairs(KEYS) do
  local all=redis.pcall('XINFO','CONSUMERS',key,ARGV[1])
  if not all.err then for _,one in ipairs(all) do if one[2]==ARGV[2] then known[i]=true end end end
end
local read=redis.pcall('XREADGROUP',unpack(ARGV,3))
for i,key in ipairs(KEYS) do if not known[i] then redis.pcall('XGROUP','DELCONSUMER',key,ARGV[1],ARGV[2]) end end
return read`
/** A script cannot pass any number of arguments on. */
const MOST_PASSED = 1_000

/** The same slots with what the engine is sent in place of such commands. */
export function inDialect(slots: readonly Slot[]): readonly Slot[] {
  return slots.some((slot) => isPrepared(slot) && slot.command.name in REWRITES) ? slots.map(rewritten) : slots
}

function rewritten(slot: Slot): Slot {
  const words = isPrepared(slot) ? REWRITES[slot.command.name]?.(slot.args) : undefined
  return words && isPrepared(slot) ? ({ ...slot, wire: encodeCommand(words) } satisfies PreparedCommand) : slot
}

/** `SCAN cursor [MATCH pattern] [COUNT n] [TYPE type] WITHTYPE`: keys and their types in turns. */
function scanWithTypes(args: readonly Argument[]): readonly Argument[] | undefined {
  const kept: Argument[] = []
  let withTypes = false
  for (let at = 2; at < args.length; at++) {
    const [option = '', value = ''] = [args[at], args[at + 1]]
    const word = wordOf(option)
    if (word === 'WITHTYPE') {
      withTypes = true
      continue
    }
    at++
    kept.push(option, word === 'COUNT' && Number(value) > MOST_COUNT ? String(MOST_COUNT) : value)
  }
  return withTypes ? ['EVAL_RO', SCAN_TYPES, '0', args[1] ?? '', ...kept] : undefined
}

/** Without LIMIT, `~` keeps no more than it says: clients count on the bound, not on whole nodes of the stream. */
function trimExactly(args: readonly Argument[]): readonly Argument[] | undefined {
  const isRough = args.length === 5 && args[3]?.toString() === '~'
  return isRough ? args.map((arg, at) => (at === 3 ? '=' : arg)) : undefined
}

function readWithoutConsumer(args: readonly Argument[]): readonly Argument[] | undefined {
  const streams = args.findIndex((arg) => wordOf(arg) === 'STREAMS')
  const isNoAck = args.slice(4, Math.max(4, streams)).some((arg) => wordOf(arg) === 'NOACK')
  if (!isNoAck || args.length > MOST_PASSED || wordOf(args[1] ?? '') !== 'GROUP') return undefined
  const keys = args.slice(streams + 1, streams + 1 + (args.length - streams - 1) / 2)
  return ['EVAL', READ_NOACK, String(keys.length), ...keys, args[2] ?? '', args[3] ?? '', ...args.slice(1)]
}

function wordOf(arg: Argument): string {
  return arg.length < 10 ? arg.toString().toUpperCase() : ''
}
