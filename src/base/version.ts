import packageFile from '../../package.json' with { type: 'json' }

/** The version of Homeport, from its package.json. */
export const VERSION: string = packageFile.version
