import { readFileIfThere } from '../../base/index.js'
import { deleteEngineFiles } from '../engine-files.js'
import type { FleetContext } from '../engine-run.js'
import { memberPaths } from '../layout.js'
import { quarantineData } from './quarantine-data.js'
import { namesIn } from './quarantine-files.js'

/**
 * Deletes the directory of a region that its database does not have. Data in it is unexpected and goes to quarantine first:
 * only primaries keep data while they do not run, and a primary never leaves its database. A directory that is not empty
 * and has no configuration file was not made by Homeport and stays, like one that cannot be read. Never rejects.
 */
export async function deleteStrayMember(context: FleetContext, databaseId: string, region: string): Promise<void> {
  const { layout, clock, logger } = context
  const paths = memberPaths(layout, databaseId, region)
  try {
    const isOurs = (await readFileIfThere(paths.configFile)) !== undefined || (await namesIn(paths.dir)).length === 0
    if (!isOurs) return
    const reason = `The database has no member in ${region}, but data was found there.`
    const { quarantineDir } = layout
    const source = { quarantineDir, databaseId, memberDir: paths.dir, reason, atMs: clock.now() }
    if ((await quarantineData(source)) !== undefined) logger.warn('engine_data_unexpected', { databaseId, region })
    await deleteEngineFiles(paths)
  } catch (error) {
    logger.error('engine_files_not_deleted', { error, databaseId, region })
  }
}
