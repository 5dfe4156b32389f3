import { useMemo } from 'react'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { DataPlane } from '../../api/data-plane.js'
import { useSession } from '../../api/session.js'

/** Returns the same data plane as long as the credentials stay the same, because it tracks its writes. */
export function useDataPlane(database: DatabaseRecord): DataPlane {
  const { access } = useSession()
  const { database_id, rest_url, rest_token, read_only_rest_token } = database
  // biome-ignore lint/correctness/useExhaustiveDependencies: the record is refreshed often; only these fields matter.
  return useMemo(
    () => new DataPlane(database, access),
    [database_id, rest_url, rest_token, read_only_rest_token, access],
  )
}
