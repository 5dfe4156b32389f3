import packageFile from '../../package.json' with { type: 'json' }

/** The version of Homeport, as its package.json has it. */
export const VERSION: string = packageFile.version
