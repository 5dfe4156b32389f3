import { Command } from 'commander'
import { systemClock } from '../base/index.js'
import { type Config, inspectDataDir } from '../config/index.js'
import { isError } from '../contract/errors/errors.js'
import type { CheckDepth } from '../store/maintenance.js'
import { checkCertificate } from './doctor/certificate.js'
import { checkDataDir, checkModes } from './doctor/data.js'
import { type Finding, fail, ok, renderFindings } from './doctor/finding.js'
import { checkDiskSpace, checkEngine, checkEnvironment, checkFileSystem, checkNode } from './doctor/machine.js'
import { checkPorts, checkRedisPorts } from './doctor/ports.js'
import { checkProblems, checkQuarantine, checkStore } from './doctor/store.js'
import { DONE, type ExitCode, FAILED } from './exit-codes.js'
import { addConfigFlags, configOf } from './flags.js'
import type { Io } from './io.js'
import { addExamples } from './remote/remote.js'

/** `homeport doctor`: checks everything the server depends on, changes nothing, and says what to do. */
export function doctorCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('doctor')
    .description('check everything the server depends on and say what to do; exit code 1 when a check fails')
    .option('--json', 'print one JSON object instead', false)
    .option('--deep', 'read the whole store and all backups, and compare all checksums', false)
  addExamples(command, ['homeport doctor', 'homeport doctor --deep --data-dir /var/lib/homeport'])
  return addConfigFlags(command, ['dataDir', 'store', 'engineBinary']).action(async () => {
    const { deep, json } = command.opts<{ deep: boolean; json: boolean }>()
    const findings = await examine(() => configOf(command), deep ? 'deep' : 'quick')
    const isHealthy = findings.every(({ status }) => status !== 'fail')
    io.out(json ? toJson(isHealthy, findings) : renderFindings(findings))
    end(isHealthy ? DONE : FAILED)
  })
}

const toJson = (isHealthy: boolean, findings: readonly Finding[]): string =>
  `${JSON.stringify({ ok: isHealthy, checks: findings }, null, 2)}\n`

async function examine(readConfig: () => Config, depth: CheckDepth): Promise<Finding[]> {
  const always = [checkNode(), checkEnvironment()]
  try {
    const config = readConfig()
    return [...always, ok('configuration', 'valid'), ...(await runChecks(config, depth))]
  } catch (error) {
    if (!isError(error, 'invalid_config')) throw error
    const todo = 'Correct the configuration; the other checks need a valid one.'
    return [...always, fail('configuration', error.message, todo)]
  }
}

async function runChecks(config: Config, depth: CheckDepth): Promise<Finding[]> {
  const dataDir = inspectDataDir(config.dataDir)
  const serverPid = dataDir.state === 'locked' ? dataDir.pid : undefined
  return [
    await checkEngine(config),
    checkDataDir(config, dataDir),
    await checkModes(config),
    checkDiskSpace(config),
    checkFileSystem(config),
    ...(await checkStore(config, depth)),
    await checkQuarantine(config),
    ...(await checkProblems(config, serverPid)),
    await checkCertificate(config, systemClock.now()),
    ...(await checkPorts(config, serverPid)),
    checkRedisPorts(config, serverPid),
  ]
}
