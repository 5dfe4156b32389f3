/** Links to pages of the console: styled by the component library, typed by the router. */
import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, Ref } from 'react'

type OfAnchor<Props> = Props &
  Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof Props> & { ref?: Ref<HTMLAnchorElement> }

/** A link in a text or a table. */
export const TextLink = createLink((props: OfAnchor<AnchorProps>) => <Anchor size="sm" {...props} />)

/** A link that looks like a button. */
export const ButtonLink = createLink((props: OfAnchor<ButtonProps>) => <Button component="a" {...props} />)
