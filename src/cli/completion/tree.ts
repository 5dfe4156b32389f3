import type { Command } from 'commander'

/** A command as a shell has to know it. */
export interface Place {
  /** The words that lead to it, without the program: `['queue', 'dlq']`. */
  readonly path: readonly string[]
  readonly commands: readonly { readonly name: string; readonly summary: string }[]
  /** Long names of its flags. */
  readonly flags: readonly string[]
}

/** Every command, the program itself first. */
export function treeOf(command: Command, path: readonly string[] = []): Place[] {
  const visible = command.commands.filter((inner) => inner.name() !== 'help')
  const place: Place = {
    path,
    commands: visible.map((inner) => ({ name: inner.name(), summary: inner.summary() || inner.description() })),
    flags: [...command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? []), '--help'],
  }
  return [place, ...visible.flatMap((inner) => treeOf(inner, [...path, inner.name()]))]
}
