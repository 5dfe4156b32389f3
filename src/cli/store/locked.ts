import { type Config, inspectDataDir, keepFilesPrivate, lockDataDir } from '../../config/index.js'
import { notFound } from '../errors.js'

/** Which commands need an existing data directory. */
type Directory = 'must exist' | 'may be new'

/**
 * Runs work on the store of a stopped server. The lock of the data directory keeps servers away meanwhile.
 * @throws HomeportError `data_dir_locked` while a server runs, `cli_not_found` without a data directory.
 */
export async function withStoppedServer<Result>(
  { dataDir }: Config,
  directory: Directory,
  work: () => Promise<Result>,
): Promise<Result> {
  if (directory === 'must exist' && inspectDataDir(dataDir).state === 'missing') {
    const problem = `There is no data directory ${dataDir}. Set the one of the server with --data-dir.`
    throw notFound(problem)
  }
  keepFilesPrivate()
  const lock = lockDataDir(dataDir)
  try {
    return await work()
  } finally {
    lock.release()
  }
}
