import type { Config } from '../../config/index.js'
import type { EngineInfo } from '../../fleet/index.js'
import { describeError } from '../errors.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** Which engine databases would run on, and whether it may be used. */
export async function checkEngine(config: Config): Promise<Finding> {
  // Loaded late, so that the other commands answer without loading the fleet.
  const { probeEngine } = await import('../../fleet/index.js')
  try {
    return judge(await probeEngine(config.engineBinary), config.engineAllowUnsafeVersion)
  } catch (error) {
    return fail('engine', 'none that works', describeError(error))
  }
}

function judge(engine: EngineInfo, isUnsafeAllowed: boolean): Finding {
  const packaged = engine.packageVersion === undefined ? '' : `, package ${engine.packageVersion}`
  const abilities = engine.capabilities.length === 0 ? '' : `; knows ${engine.capabilities.join(', ')}`
  const found = `${engine.kind} ${engine.version} (${engine.binary}${packaged})${abilities}`
  if (engine.problems.length === 0) return ok('engine', found)
  return (isUnsafeAllowed ? warn : fail)('engine', found, engine.problems.join(' '))
}
