import type { Config, ObjectPlace } from '../config/index.js'
import { ObjectStorage } from './storage.js'

/** The variables with the credentials of the storage. */
export type StorageVariables = Readonly<Record<string, string | undefined>>

/** How a storage is reached. */
export type StorageConfig = Pick<
  Config,
  'backupsEndpoint' | 'backupsRegion' | 'backupsPathStyle' | 'backupsCredentialsFile'
>

/** The client of a place in the storage that the options describe. */
export function storageAt(place: ObjectPlace, config: StorageConfig, variables: StorageVariables): ObjectStorage {
  const { backupsEndpoint: endpoint, backupsRegion: region, backupsPathStyle: pathStyle } = config
  const credentials = { file: config.backupsCredentialsFile, environment: variables }
  return new ObjectStorage({ place, endpoint, region, pathStyle, credentials })
}
