"""Evaluations of prompts: which prompt answers best?"""
